"""The guard of the gateway: what every HTTP request passes before the protocol, and what is recorded of it.

Each part is a class around an ASGI application, or a plain object that the gateway calls. `chain.guarded` composes the parts
that need no principal. `limits`, `audit` and `metrics` are called by the gateway, which knows the principal and the tool.
"""
