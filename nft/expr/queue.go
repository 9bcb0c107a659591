package expr

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Queue is the kernel's queue expression. google/nftables has no register for
// the number.
type Queue struct {
	// Num is the first queue and Total how many there are, where Register is 0.
	Num, Total uint16
	// Register is the register of the number.
	Register       uint32
	Bypass, Fanout bool
}

// flags returns the kernel's flags.
func (e *Queue) flags() uint16 {
	return uint16(Bit(e.Bypass, unix.NFT_QUEUE_FLAG_BYPASS) | Bit(e.Fanout, unix.NFT_QUEUE_FLAG_CPU_FANOUT))
}

// Marshal is Expr's.
func (e *Queue) Marshal(uint8) ([]byte, error) {
	var b []byte
	if e.Register == 0 {
		b = appendU16(b, unix.NFTA_QUEUE_NUM, e.Num)
		b = appendU16(b, unix.NFTA_QUEUE_TOTAL, e.Total)
	}
	if f := e.flags(); f != 0 {
		b = appendU16(b, unix.NFTA_QUEUE_FLAGS, f)
	}
	if e.Register != 0 {
		b = AppendU32(b, unix.NFTA_QUEUE_SREG_QNUM, e.Register)
	}
	return marshalNamed("queue", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Queue) Unmarshal(data []byte) error {
	*e = Queue{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_QUEUE_NUM:
			e.Num, err = attrU16(v)
		case unix.NFTA_QUEUE_TOTAL:
			e.Total, err = attrU16(v)
		case unix.NFTA_QUEUE_FLAGS:
			var flags uint16
			flags, err = attrU16(v)
			e.Bypass, e.Fanout = flags&unix.NFT_QUEUE_FLAG_BYPASS != 0, flags&unix.NFT_QUEUE_FLAG_CPU_FANOUT != 0
		case unix.NFTA_QUEUE_SREG_QNUM:
			e.Register, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Queue) String() string {
	s := fmt.Sprintf("queue num %d", e.Num)
	switch {
	case e.Register != 0:
		s = fmt.Sprintf("queue sreg_qnum %d", e.Register)
	case e.Total > 1:
		s += fmt.Sprintf("-%d", e.Num+e.Total-1)
	}
	if e.Bypass {
		s += " bypass"
	}
	if e.Fanout {
		s += " fanout"
	}
	return s
}

func (e *Queue) setID() *uint32 { return nil }

// appendU16 appends a 16-bit attribute in network byte order.
func appendU16(b []byte, typ, v uint16) []byte {
	return AppendAttr(b, typ, binary.BigEndian.AppendUint16(nil, v))
}

// attrU16 reads a 16-bit attribute.
func attrU16(v []byte) (uint16, error) {
	if len(v) != 2 {
		return 0, ErrAttr
	}
	return binary.BigEndian.Uint16(v), nil
}
