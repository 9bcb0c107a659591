module github.com/weft-proxy/weft/deploy/compat

go 1.26.0

replace github.com/weft-proxy/weft => ../..
