"""The vendor of chart images (chart-img.com): its API, its documentation, and its exchanges and symbols."""
