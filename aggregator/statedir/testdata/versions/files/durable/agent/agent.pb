weft-fragment 1 sha256:66c1d50b54e5fbb441c2a3d44e049ff57d4f5bf1e9bff454f39291c44b0c7244

agent"j
inetagent"8
inputfilterinput"filterB
ip saddr @blocked drop*!
blocked	ipv4_addrZ
	192.0.2.1