package expr

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/selector"
)

// CT loads or sets a key of a connection. google/nftables marshals the direction in four bytes
// although the kernel reads one.
type CT struct {
	// enum nft_ct_keys
	Key uint32
	// registers; one is 0
	Dest, Source uint32
	Direction    selector.Direction
}

func (e *CT) table(t *table) {
	t.name, t.format = "ct", "ct load %[1]s => reg %[2]d"
	if e.Source != 0 {
		t.format = "ct set %[1]s with reg %[4]d"
	}
	t.addWord(unix.NFTA_CT_KEY, &e.Key, func(key uint32) string { return selector.CTKeys.DumpName(key) })
	t.addIf(e.Dest != 0, unix.NFTA_CT_DREG, &e.Dest, "")
	t.addIf(e.Direction != selector.NoDirection, unix.NFTA_CT_DIRECTION, (*direction)(&e.Direction), " , dir %s")
	t.addIf(e.Source != 0, unix.NFTA_CT_SREG, &e.Source, "")
}

type direction selector.Direction

func (d *direction) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return attr.AppendUint8(b, typ, uint8(*d-direction(selector.DirectionOriginal))), nil
}

func (d *direction) ReadAttr(r *attr.Reader) error {
	*d = direction(selector.DirectionOriginal) + direction(r.Uint8())
	return nil
}

func (d *direction) String() string { return wordAt(uint32(*d), "", "original", "reply") }
