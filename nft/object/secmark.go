package object

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// nftaSecMarkCtx is the attribute of a secmark (enum nft_secmark_attributes).
const nftaSecMarkCtx = 1

func encodeSecMark(_ nft.Family, body syntax.ObjectBody) ([]byte, error) {
	o := body.(*syntax.SecMarkBody)
	if o.Context == "" {
		return nil, syntax.ErrorAt(start, `a secmark has a security context: write it in double quotes, such as "system_u:object_r:ssh_server_packet_t:s0"`)
	}
	return attr.AppendBytes(nil, nftaSecMarkCtx, o.Context), nil
}

func decodeSecMark(_ nft.Family, a attributes) (syntax.ObjectBody, error) {
	return &syntax.SecMarkBody{Context: a.text(nftaSecMarkCtx)}, nil
}
