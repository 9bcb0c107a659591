package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/set"
)

// maxInterrupted bounds how often a dump starts again because the ruleset
// changed meanwhile.
const maxInterrupted = 32

// errInterrupted is a dump that is not consistent (NLM_F_DUMP_INTR).
var errInterrupted = errors.New("dump interrupted")

// reply is a message of the kernel's about an object.
type reply struct {
	family nft.Family
	attrs  []byte
}

// Dump reads all tables that carry weft's mark, with everything in them, in
// the kernel's order. It reads nothing of other tables but their names and
// userdata. Tables of the connection that are gone are not its own any more.
//
// Tables that the connection does not own can change while they are read: Dump
// then listens to the kernel's events meanwhile, and starts again until there is
// none about a marked table. Changes of other tables do not matter. Possible
// errors: ErrBusy, ErrMalformed, ErrClosed, those of the system calls.
func (c *Conn) Dump() ([]Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tables, err := c.dumpStable()
	if err != nil {
		return nil, fmt.Errorf("dump ruleset: %w", err)
	}
	return tables, nil
}

// maxRepeats bounds how often DumpSet reads a set that changes by itself.
const maxRepeats = 3

// DumpSet reads the elements of one set or map of weft's over a socket of its own:
// commits do not wait for it, which takes long where there are many elements.
// Packets go on changing the set meanwhile, and it may grow: then some elements come
// twice and others not at all, and after three such readings what was found is
// returned. Its errors are those of Dump; one that wraps ENOENT says that there is no
// such set.
func (c *Conn) DumpSet(table nft.TableID, set *set.Set) ([]set.Element, error) {
	sock, err := dial(c.netNS)
	if err != nil {
		return nil, fmt.Errorf("dump set %s of table %s: %w", set.Name, table, err)
	}
	defer func() { _ = sock.close() }() // nothing was written to it
	r := &Conn{netNS: c.netNS, sock: sock, seq: 1}
	d := newElementDecoder(set)
	for range maxRepeats {
		repeats, err := r.readElements(d, table, set)
		if err != nil {
			return nil, fmt.Errorf("dump set %s of table %s: %w", set.Name, table, err)
		}
		if !repeats {
			break
		}
	}
	return d.finish(), nil
}

// dumpStable is Dump with the lock held.
func (c *Conn) dumpStable() ([]Table, error) {
	events, err := c.listen()
	if err != nil {
		return nil, err
	}
	defer func() { _ = events.close() }() // nothing was written to it
	for range maxInterrupted {
		events.stale = true // the kernel sends unasked
		if err := events.drain(); err != nil {
			return nil, err
		}
		gen, err := c.generation()
		if err != nil {
			return nil, err
		}
		tables, err := c.dumpTables()
		if errors.Is(err, unix.ENOENT) {
			continue // deleted by another process since it was listed
		}
		if err != nil {
			return nil, err
		}
		if c.canChange(tables) {
			changed, err := c.changed(events, tables)
			if err != nil {
				return nil, err
			}
			if changed {
				continue
			}
		}
		c.gen = gen
		c.forget(tables)
		return tables, nil
	}
	return nil, ErrBusy
}

// canChange reports whether another process could have changed the tables.
func (c *Conn) canChange(tables []Table) bool {
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	return slices.ContainsFunc(tables, func(t Table) bool { return !c.tables[t.ID] })
}

// changed reports whether there was an event about one of the tables, or too
// many events.
//
// The kernel sends the events of a transaction before it lets the next one
// begin. So after a batch of ours, an empty one, all events of what a dump before it
// could have seen are there.
func (c *Conn) changed(events *socket, tables []Table) (bool, error) {
	e := encoder{ackEnd: c.ackEnd, seq: c.seq}
	if err := e.batch(nil); err != nil {
		return false, err
	}
	if err := c.exchange(e.buf, len(e.messages), func(header, kernelError) error { return nil }); err != nil {
		return false, err
	}
	w := watcher{portID: c.portID, owns: func(id nft.TableID) bool {
		return slices.ContainsFunc(tables, func(t Table) bool { return t.ID == id })
	}}
	for {
		b, err := events.recv(false)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return len(w.pending) > 0, nil
		case errors.Is(err, unix.ENOBUFS):
			return true, nil
		case err != nil:
			return false, err
		}
		if len(w.datagram(b)) > 0 {
			return true, nil
		}
	}
}

// forget drops the connection's tables that the kernel no longer has.
func (c *Conn) forget(dumped []Table) {
	c.setTables(func(tables map[nft.TableID]bool) {
		for id := range tables {
			if !slices.ContainsFunc(dumped, func(t Table) bool { return t.ID == id }) {
				delete(tables, id)
			}
		}
	})
}

// dumpTables reads the marked tables once.
func (c *Conn) dumpTables() ([]Table, error) {
	infos, err := c.listTables()
	if err != nil {
		return nil, err
	}
	var tables []Table
	for _, info := range infos {
		if !info.ours {
			continue
		}
		t := Table{ID: info.id, Comment: info.comment, Owned: c.owns(info.id), Dormant: info.dormant}
		if t.Chains, err = c.dumpChains(info.id); err != nil {
			return nil, fmt.Errorf("table %s: %w", info.id, err)
		}
		if err := c.dumpRules(info.id, t.Chains); err != nil {
			return nil, fmt.Errorf("table %s: %w", info.id, err)
		}
		if t.Sets, err = c.dumpSets(info.id); err != nil {
			return nil, fmt.Errorf("table %s: %w", info.id, err)
		}
		if t.Objects, err = c.dumpObjects(info.id); err != nil {
			return nil, fmt.Errorf("table %s: %w", info.id, err)
		}
		if t.Flowtables, err = c.dumpFlowtables(info.id); err != nil {
			return nil, fmt.Errorf("table %s: %w", info.id, err)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// listTables reads the names, owners and userdata of all tables.
func (c *Conn) listTables() ([]tableInfo, error) {
	var tables []tableInfo
	err := c.dump(unix.NFT_MSG_GETTABLE, unix.AF_UNSPEC, nil, func() { tables = tables[:0] }, func(m reply) error {
		t, err := decodeTable(m)
		tables = append(tables, t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return tables, nil
}

// table reads one table's name, owner and userdata.
func (c *Conn) table(id nft.TableID) (tableInfo, error) {
	var t tableInfo
	name := attr.AppendString(nil, unix.NFTA_TABLE_NAME, id.Name)
	err := c.request(msgType(unix.NFT_MSG_GETTABLE), 0, uint8(id.Family), name, func(m reply) (err error) {
		t, err = decodeTable(m)
		return err
	})
	if err != nil {
		return tableInfo{}, fmt.Errorf("get table %s: %w", id, err)
	}
	return t, nil
}

// dumpChains reads the chains of a table. The kernel cannot leave out those of
// other tables of the family.
func (c *Conn) dumpChains(id nft.TableID) ([]Chain, error) {
	var chains []Chain
	err := c.dump(unix.NFT_MSG_GETCHAIN, id.Family, nil, func() { chains = chains[:0] }, func(m reply) error {
		chain, err := decodeChain(m, id.Name)
		if err == nil && chain != nil {
			chains = append(chains, Chain{Decl: chain})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list chains: %w", err)
	}
	return chains, nil
}

// dumpRules reads the rules of a table into its chains.
func (c *Conn) dumpRules(id nft.TableID, chains []Chain) error {
	byName := make(map[string]int, len(chains))
	for i := range chains {
		byName[chains[i].Decl.Name] = i
	}
	reset := func() {
		for i := range chains {
			chains[i].Rules = nil
		}
	}
	request := attr.AppendString(nil, unix.NFTA_RULE_TABLE, id.Name)
	err := c.dumpInTable(unix.NFT_MSG_GETRULE, id.Family, request, reset, func(m reply) error {
		r, err := decodeRule(m)
		if i, ok := byName[r.chain]; ok && err == nil && r.table == id.Name {
			chains[i].Rules = append(chains[i].Rules, Rule{Handle: &Handle{N: r.handle}, Info: r.info, Writes: r.writes})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	return nil
}

// dumpSets reads the named sets of a table and their elements.
func (c *Conn) dumpSets(id nft.TableID) ([]Set, error) {
	var sets []Set
	request := attr.AppendString(nil, unix.NFTA_SET_TABLE, id.Name)
	err := c.dump(unix.NFT_MSG_GETSET, id.Family, request, func() { sets = sets[:0] }, func(m reply) error {
		set, err := decodeSet(m, id.Name)
		if err == nil && set != nil && set.Flags&unix.NFT_SET_ANONYMOUS == 0 {
			sets = append(sets, Set{Decl: set})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list sets: %w", err)
	}
	for i := range sets {
		if sets[i].Elements, err = c.dumpElements(id, sets[i].Decl); err != nil {
			return nil, fmt.Errorf("set %s: list elements: %w", sets[i].Decl.Name, err)
		}
	}
	return sets, nil
}

// dumpElements reads the elements of a set.
//
// The kernel continues a dump by skipping as many elements as it has sent. While a hash
// table grows, as it does for a moment after many elements were added, their
// order changes: some come twice, and as many are left out, without
// NLM_F_DUMP_INTR. So a dump with repeats is done again. Sets whose elements come and
// go by themselves are never still; of those the dump is taken as it is.
func (c *Conn) dumpElements(id nft.TableID, set *set.Set) ([]set.Element, error) {
	const volatile = unix.NFT_SET_TIMEOUT | unix.NFT_SET_EVAL
	d := newElementDecoder(set)
	for range maxInterrupted {
		repeats, err := c.readElements(d, id, set)
		if err != nil {
			return nil, err
		}
		if !repeats || set.Flags&volatile != 0 {
			return d.finish(), nil
		}
	}
	return nil, ErrBusy
}

// readElements reads the elements of a set once, and reports whether some came
// twice.
func (c *Conn) readElements(d *elementDecoder, id nft.TableID, set *set.Set) (repeats bool, err error) {
	request := attr.AppendString(nil, unix.NFTA_SET_ELEM_LIST_TABLE, id.Name)
	request = attr.AppendString(request, unix.NFTA_SET_ELEM_LIST_SET, set.Name)
	if err := c.dumpInTable(unix.NFT_MSG_GETSETELEM, id.Family, request, d.reset, d.message); err != nil {
		return false, err
	}
	return d.dedupe(), nil
}

// dump asks for all objects of a kind and calls f for each. When the ruleset
// changed meanwhile it calls reset and starts again.
func (c *Conn) dump(typ int, family nft.Family, request []byte, reset func(), f func(reply) error) error {
	for range maxInterrupted {
		reset()
		err := c.request(msgType(typ), unix.NLM_F_DUMP, uint8(family), request, f)
		if !errors.Is(err, errInterrupted) {
			return err
		}
	}
	return ErrBusy
}

// dumpInTable is dump for objects that the kernel finds by way of their table:
// changes of other tables cannot confuse it, and those of the table
// itself are found out otherwise.
func (c *Conn) dumpInTable(typ int, family nft.Family, request []byte, reset func(), f func(reply) error) error {
	reset()
	err := c.request(msgType(typ), unix.NLM_F_DUMP, uint8(family), request, f)
	if errors.Is(err, errInterrupted) {
		return nil
	}
	return err
}

// request sends one message and calls f for each object of the answer.
func (c *Conn) request(typ, flags uint16, family uint8, attributes []byte, f func(reply) error) error {
	if err := c.sock.drain(); err != nil {
		return err
	}
	seq := c.seq
	c.seq++
	b := appendHeader(nil, typ, unix.NLM_F_REQUEST|flags, seq, family, 0)
	b = append(b, attributes...)
	closeMessage(b, 0)
	if err := c.sock.send(b); err != nil {
		return err
	}
	done, interrupted := false, false
	err := c.replies(func(h header, payload []byte) error {
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
		if len(payload) < genLen {
			return ErrMalformed
		}
		return f(reply{family: nft.Family(payload[0]), attrs: payload[genLen:]})
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

// doneError returns the error with which a dump ended.
func doneError(payload []byte) error {
	if len(payload) < 4 {
		return nil
	}
	if n := int32(binary.NativeEndian.Uint32(payload)); n < 0 {
		return unix.Errno(-n)
	}
	return nil
}
