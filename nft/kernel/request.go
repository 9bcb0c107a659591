package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

const maxInterrupted = 32

// link is a netlink socket with the sequence number of its next message. Its methods send requests
// and batches, and read tables of any program.
type link struct {
	netNS int
	sock  *socket
	seq   uint32
}

// NLM_F_DUMP_INTR
var errInterrupted = errors.New("dump interrupted")

// request calls f for each object of the answer.
func (l *link) request(typ, flags uint16, family nft.Family, attributes []byte, f func(reply) error) error {
	if err := l.sock.drain(); err != nil {
		return err
	}
	seq := l.seq
	l.seq++
	b := appendHeader(nil, typ, unix.NLM_F_REQUEST|flags, seq, uint8(family), 0)
	b = append(b, attributes...)
	closeMessage(b, 0)
	if err := l.sock.send(b); err != nil {
		return err
	}
	done, interrupted := false, false
	err := l.replies(func(h header, payload []byte) error {
		if h.seq != seq {
			return nil
		}
		interrupted = interrupted || h.flags&unix.NLM_F_DUMP_INTR != 0
		switch h.typ {
		case unix.NLMSG_DONE:
			done = true
			return doneError(payload)
		case unix.NLMSG_ERROR:
			ke, err := parseError(h.flags, payload)
			if err != nil {
				return err
			}
			if done = true; ke.errno != 0 {
				return ke.errno
			}
			return nil
		}
		if h.flags&unix.NLM_F_MULTI == 0 {
			done = true
		}
		m, err := parseReply(payload)
		if err != nil {
			return err
		}
		return f(m)
	})
	switch {
	case err != nil:
		return err
	case interrupted:
		return errInterrupted
	case !done:
		return fmt.Errorf("answer is incomplete: %w", ErrMalformed)
	}
	return nil
}

func doneError(payload []byte) error {
	if len(payload) < 4 {
		return nil
	}
	if n := int32(binary.NativeEndian.Uint32(payload)); n < 0 {
		return unix.Errno(-n)
	}
	return nil
}

func (l *link) replies(f func(h header, payload []byte) error) error {
	for {
		b, err := l.sock.recv(false)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		for len(b) > 0 {
			h, payload, rest, ok := nextMessage(b)
			if !ok {
				return ErrMalformed
			}
			if err := f(h, payload); err != nil {
				return err
			}
			b = rest
		}
	}
}

func (l *link) generation() (gen uint32, err error) {
	err = l.request(msgType(unix.NFT_MSG_GETGEN), 0, unix.AF_UNSPEC, nil, func(m reply) error {
		r, _ := attr.Find(m.attrs, unix.NFTA_GEN_ID)
		gen = r.Uint32BE()
		return r.Err()
	})
	return gen, err
}

// dump calls reset and starts again if the ruleset changes meanwhile.
func (l *link) dump(typ int, family nft.Family, request []byte, reset func(), f func(reply) error) error {
	for range maxInterrupted {
		reset()
		err := l.request(msgType(typ), unix.NLM_F_DUMP, family, request, f)
		if !errors.Is(err, errInterrupted) {
			return err
		}
	}
	return ErrBusy
}

// dumpInTable is for objects that the kernel finds through their table. It ignores interruptions:
// other tables do not matter, and callers detect changes of this table by other means.
func (l *link) dumpInTable(typ int, family nft.Family, request []byte, reset func(), f func(reply) error) error {
	reset()
	err := l.request(msgType(typ), unix.NLM_F_DUMP, family, request, f)
	if errors.Is(err, errInterrupted) {
		return nil
	}
	return err
}

// list returns the objects of a table, or of all tables if its name is empty, in the kernel's
// order. names let the kernel select.
func list[T any](
	dump func(int, nft.Family, []byte, func(), func(reply) error) error,
	typ int, table nft.TableID, names []byte, decode func(reply) (T, error),
) ([]T, error) {
	var all []T
	err := dump(typ, table.Family, names, func() { all = all[:0] }, func(m reply) error {
		if id, _ := m.table(); table.Name != "" && id.Name != table.Name {
			return nil
		}
		v, err := decode(m)
		all = append(all, v)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", requestNouns[typ], err)
	}
	return all, nil
}

var requestNouns = map[int]string{
	unix.NFT_MSG_GETTABLE: "tables", unix.NFT_MSG_GETCHAIN: "chains", unix.NFT_MSG_GETRULE: "rules",
	unix.NFT_MSG_GETSET: "sets", unix.NFT_MSG_GETOBJ: "objects", unix.NFT_MSG_GETFLOWTABLE: "flowtables",
}

func named(table string, nameAttr uint16, name string) []byte {
	b := attr.AppendString(nil, nftaTable, table)
	if name != "" {
		b = attr.AppendString(b, nameAttr, name)
	}
	return b
}
