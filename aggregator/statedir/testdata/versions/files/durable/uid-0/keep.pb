weft-fragment 1 sha256:f55e9193fd4a316efaffff8ab103602af6415a5d24a4cb8e94b7367122a6ac42

keep"¢
inetkeepwhy"n
inputfilterinput"5*acceptB2
*ip saddr @blocked counter name "hits" dropkeepB
tcp dport vmap @where*@
blocked	ipv4_addr"intervalZ
198.51.100.0/24Z
203.0.113.729
whereinet_service : verdictZ
22acceptZ

80dropR"
counterhitspackets 0 bytes 0