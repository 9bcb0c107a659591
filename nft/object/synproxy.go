package object

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

func encodeSynProxy(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	o := body.(*syntax.SynProxyBody)
	return google.MarshalExprData(uint8(family), &google.SynProxy{
		Mss: o.MSS, MssValueSet: o.Given, Wscale: o.WScale, WscaleValueSet: o.Given, Timestamp: o.Timestamp, SackPerm: o.SackPerm,
	})
}

func decodeSynProxy(_ nft.Family, a attributes) (syntax.ObjectBody, error) {
	flags := a.number(google.NFTA_SYNPROXY_FLAGS)
	return &syntax.SynProxyBody{
		Given: flags&(google.NF_SYNPROXY_OPT_MSS|google.NF_SYNPROXY_OPT_WSCALE) != 0,
		MSS:   uint16(a.number(google.NFTA_SYNPROXY_MSS)), WScale: uint8(a.number(google.NFTA_SYNPROXY_WSCALE)),
		Timestamp: flags&google.NF_SYNPROXY_OPT_TIMESTAMP != 0, SackPerm: flags&google.NF_SYNPROXY_OPT_SACK_PERM != 0,
	}, nil
}
