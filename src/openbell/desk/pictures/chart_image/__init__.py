"""The vendor of chart images (chart-img.com): its API, its documentation, and its exchanges and symbols.

`vendor` is the client of the API: `http` bounds what a response may cost, `answers` and `words` read it. Both keep
requests within the plan. `documentation` fetches, caches and completes the page that `page_facts` reads. `directory`
lists exchanges and symbols.
"""
