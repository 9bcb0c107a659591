package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Queue passes packets to a program. google/nftables has no register for the number, and always
// sends flags.
type Queue struct {
	// 0 with a Register
	Num, Total uint16
	Register   uint32
	// NFT_QUEUE_FLAG_*
	Flags uint16
}

func (e *Queue) table(t *table) {
	t.name, t.text = "queue", e.format
	t.addIf(e.Register == 0, unix.NFTA_QUEUE_NUM, &e.Num, "")
	t.addIf(e.Register == 0, unix.NFTA_QUEUE_TOTAL, &e.Total, "")
	t.addIf(e.Flags != 0, unix.NFTA_QUEUE_FLAGS, &e.Flags, "")
	t.addIf(e.Register != 0, unix.NFTA_QUEUE_SREG_QNUM, &e.Register, "")
}

func (e *Queue) format() string {
	s := fmt.Sprintf("queue num %d", e.Num)
	switch {
	case e.Register != 0:
		s = fmt.Sprintf("queue sreg_qnum %d", e.Register)
	case e.Total > 1:
		s += fmt.Sprintf("-%d", e.Num+e.Total-1)
	}
	if e.Flags&unix.NFT_QUEUE_FLAG_BYPASS != 0 {
		s += " bypass"
	}
	if e.Flags&unix.NFT_QUEUE_FLAG_CPU_FANOUT != 0 {
		s += " fanout"
	}
	return s
}
