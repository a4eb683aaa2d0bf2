# Copyright: Quiver maintainers. Apache-2.0.
"""The options of the connection."""


class ModuleDocFragment:
    """What each module takes, besides its own."""

    DOCUMENTATION = r"""
options:
  address:
    description:
      - The router's API, the path of its socket on the managed machine, or C(HOST:PORT).
    type: str
    default: /run/quiver/api.sock
  token:
    description: The text of the router's token file, where C(HOST:PORT) is its C(tcp-port).
    type: str
  ca:
    description: Whose certificate the router must have, in PEM, where C(HOST:PORT) is its C(tls-port).
    type: path
  certificate:
    description: The certificate to show, in PEM.
    type: path
  key:
    description: Its private key, in PEM.
    type: path
  timeout_s:
    description: An answer that takes longer is a failure, seconds.
    type: int
    default: 60
requirements:
  - quiver_api (the package python3-quiver-api), on the machine that the module runs on
"""
