package expr

import (
	"fmt"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// Log logs packets; missing options are nil. google/nftables has them as bits of another field.
type Log struct {
	Prefix            *string
	Level             *uint32
	Flags             *uint32
	Snaplen           *uint32
	Group, QThreshold *uint16
}

// LogFlags are indexed by bit.
var LogFlags = []string{"tcp sequence", "tcp options", "ip options", "skuid", "", "ether"}

// LogFlagsAll are all LogFlags.
const LogFlagsAll = uint32(google.LogFlagsMask)

func (e *Log) table(t *table) {
	t.name, t.text = "log", e.format
	t.addIf(e.Group != nil, unix.NFTA_LOG_GROUP, attr.Optional[uint16]{To: &e.Group}, "")
	t.addIf(e.Prefix != nil, unix.NFTA_LOG_PREFIX, attr.Optional[string]{To: &e.Prefix}, "")
	t.addIf(e.Snaplen != nil, unix.NFTA_LOG_SNAPLEN, attr.Optional[uint32]{To: &e.Snaplen}, "")
	t.addIf(e.QThreshold != nil, unix.NFTA_LOG_QTHRESHOLD, attr.Optional[uint16]{To: &e.QThreshold}, "")
	t.addIf(e.Level != nil, unix.NFTA_LOG_LEVEL, attr.Optional[uint32]{To: &e.Level}, "")
	t.addIf(e.Flags != nil, unix.NFTA_LOG_FLAGS, attr.Optional[uint32]{To: &e.Flags}, "")
}

func (e *Log) format() string {
	s := "log"
	if e.Prefix != nil {
		s += " prefix " + *e.Prefix
	}
	if e.Group != nil {
		return s + fmt.Sprintf(" group %d snaplen %d qthreshold %d", *e.Group, value(e.Snaplen), value(e.QThreshold))
	}
	if e.Level != nil {
		s += fmt.Sprintf(" level %d", *e.Level)
	}
	for i, name := range [...]string{"tcpseq", "tcpopt", "ipopt", "uid", "nflog", "macdecode"} {
		if value(e.Flags)&(1<<i) != 0 && name != "nflog" {
			s += " " + name
		}
	}
	return s
}
