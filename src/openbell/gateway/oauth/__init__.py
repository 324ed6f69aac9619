"""OAuth 2.1 for the gateway: an authorization server with a consent page, and the credentials that its tokens are.

`routes.oauth_routes` returns all routes; `credentials` has what `Admission` needs.
"""
