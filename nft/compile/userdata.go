package compile

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/userdata"
)

// UserData is the rule's userdata: its comment as nft stores it, then the
// rule's fingerprint and its owner, which nft skips. Owner has at most
// MaxOwner bytes.
func (r *Rule) UserData(owner string) ([]byte, error) {
	if len(owner) > userdata.MaxOwner {
		return nil, fmt.Errorf("encode rule userdata: owner %.40q... has %d bytes: want at most %d", owner, len(owner), userdata.MaxOwner)
	}
	b := make([]byte, 0, len(r.Comment)+len(owner)+len(r.Fingerprint)+7)
	b, err := userdata.AppendComment(b, r.Comment)
	if err != nil {
		return nil, fmt.Errorf("encode rule userdata: %w", err)
	}
	b = append(b, userdata.UdataFingerprint, byte(len(r.Fingerprint)))
	b = append(b, r.Fingerprint[:]...)
	b = append(b, userdata.UdataOwner, byte(len(owner)))
	return append(b, owner...), nil
}
