package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/userdata"
)

// The first batch has no end, so the kernel validates and drops it. It creates a table with an
// owner, destroys an element, and creates a table with too much userdata. Destroying in a missing
// set is ENOENT, or EINVAL on kernels without the message. The userdata is ERANGE, or ignored on
// kernels without the attribute.
func (c *Conn) probe(noOwner bool) error {
	table := nft.TableID{Family: nft.FamilyIP, Name: fmt.Sprintf("weft-probe-%d", c.portID.Load())}
	e := encoder{buffer: buffer{seq: c.seq}}
	e.beginBatch()
	probe := e.seq + uint32(len(e.messages))
	e.open(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, table)
	e.uint32(unix.NFTA_TABLE_FLAGS, tableFlagsWhenOwned)
	e.remove(nftMsgDestroySetElem, table, unix.NFTA_SET_ELEM_LIST_SET, "probe")
	e.probeUserData(nftaTableUserData, table)
	e.closeLast()

	answered := false
	err := c.exchange(&e, func(h header, ke kernelError) error {
		switch {
		case errors.Is(ke.errno, unix.EPERM):
			return ErrPermission
		case h.seq == probe+1:
			c.destroy = errors.Is(ke.errno, unix.ENOENT)
			return nil
		case h.seq == probe+2 && ke.errno == 0:
			return ErrTooOld
		case h.seq == probe+2:
			return nil
		case h.seq != probe:
			return fmt.Errorf("%w (%w)", ErrNoNFTables, ke.errno)
		}
		answered = true
		c.owner = ke.errno == 0 && !noOwner
		return nil
	})
	if err != nil {
		return err
	}
	if !answered {
		return fmt.Errorf("probe table ownership: no answer: %w", ErrMalformed)
	}

	e = encoder{features: features{ackEnd: true}, buffer: buffer{seq: c.seq}}
	if err := e.batch(nil); err != nil {
		return err
	}
	err = c.exchange(&e, func(h header, ke kernelError) error {
		if ke.errno != 0 {
			return fmt.Errorf("commit empty batch: %w", ke.errno)
		}
		c.ackEnd = h.seq == e.seq+1
		return nil
	})
	if err != nil {
		return err
	}
	if c.renew, err = atLeast(6, 12); err != nil {
		return err
	}
	c.gen, err = c.generation()
	return err
}

// atLeast is for features visible only in a commit.
func atLeast(major, minor int) (bool, error) {
	var u unix.Utsname
	var is [2]int
	if err := unix.Uname(&u); err != nil {
		return false, fmt.Errorf("uname: %w", err)
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &is[0], &is[1]); err != nil {
		return false, fmt.Errorf("version of the kernel %q: %w", unix.ByteSliceToString(u.Release[:]), err)
	}
	return is[0] > major || is[0] == major && is[1] >= minor, nil
}

// probeUserData fails only if the kernel knows userdata of tables.
func (e *encoder) probeUserData(typ uint16, table nft.TableID) {
	table.Name += "-userdata"
	e.open(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, table)
	e.bytes(typ, make([]byte, userdata.Max+1))
}

func (l *link) exchange(e *encoder, f func(header, kernelError) error) error {
	if err := l.sock.drain(); err != nil {
		return err
	}
	l.seq += uint32(len(e.messages))
	if err := l.sock.send(e.buf); err != nil {
		return err
	}
	return l.replies(func(h header, payload []byte) error {
		if h.typ != unix.NLMSG_ERROR {
			return nil
		}
		ke, err := parseError(h.flags, payload)
		if err != nil {
			return err
		}
		return f(h, ke)
	})
}
