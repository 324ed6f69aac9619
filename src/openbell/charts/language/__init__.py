"""From a sentence to a chart config: recognisers over the words of the sentence, and the tables that they use."""
