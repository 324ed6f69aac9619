"""The quotes API (Arche) without HTTP: requests, answers as bytes, and the upstreams that the server `arche` can ask.

`requests` reads query parameters, `live` and `historical` answer them from the bar service, `bodies` writes the envelopes.
`local` puts them together in this process. `upstreams` asks it there or an API over HTTP.
"""
