package kernel

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Dump reads all tables with weft's mark, with all contents, in the kernel's order. The connection
// forgets missing tables, so AddTable creates them again.
//
// Dump starts again if another process changes a marked table meanwhile. Possible errors: ErrBusy,
// ErrMalformed, ErrClosed, and errors of the system calls.
func (c *Conn) Dump() ([]Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tables, err := c.dumpStable()
	if err != nil {
		return nil, fmt.Errorf("dump ruleset: %w", err)
	}
	return tables, nil
}

const maxSetReads = 3

// DumpSet reads the elements of a set or map over its own socket, so that commits do not wait.
//
// If packets let the set grow meanwhile, the kernel may repeat some elements and omit others. After
// three attempts DumpSet returns such a result. Errors are as for Dump except ErrBusy; they wrap
// ENOENT if the set is missing or the table is foreign.
func (c *Conn) DumpSet(table nft.TableID, set *set.Set) ([]set.Element, error) {
	d := newElementDecoder(set)
	if err := c.dumpSet(table, d); err != nil {
		return nil, fmt.Errorf("dump set %s of table %s: %w", set.Name, table, err)
	}
	return d.finish(), nil
}

func (l *link) dumpSet(table nft.TableID, d *elementDecoder) error {
	return l.apart(table, func(r *link) error {
		_, err := r.readElements(d, table, maxSetReads)
		return err
	})
}

// apart reads from one of weft's tables over a new socket, so that commits do not wait.
func (l *link) apart(table nft.TableID, read func(*link) error) error {
	r, err := OpenReader(Config{NetNS: l.netNS})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // read-only
	info, err := r.table(table)
	switch {
	case err != nil:
		return err
	case !info.Ours:
		return fmt.Errorf("%w (%w)", ErrForeignTable, unix.ENOENT)
	}
	return read(&r.link)
}

// The caller holds the lock.
func (c *Conn) dumpStable() ([]Table, error) {
	events, err := listen(c.netNS, c.portID.Load(), unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, err
	}
	defer func() { _ = events.close() }() // read-only
	for range maxInterrupted {
		events.pending = true // the kernel sends events unasked
		if err := events.drain(); err != nil {
			return nil, err
		}
		gen, err := c.generation()
		if err != nil {
			return nil, err
		}
		tables, err := c.dumpTables()
		if errors.Is(err, unix.ENOENT) {
			continue // another process deleted an object meanwhile
		}
		if err != nil {
			return nil, err
		}
		if c.unprotected(tables) {
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

func (c *Conn) unprotected(tables []Table) bool {
	return slices.ContainsFunc(tables, func(t Table) bool {
		protected, _ := c.tables.lookup(t.ID)
		return !protected
	})
}

// The kernel sends the events of a transaction before the next one begins. So after an empty batch,
// all events of earlier transactions have arrived.
func (c *Conn) changed(events *socket, tables []Table) (bool, error) {
	e := encoder{features: c.features, buffer: buffer{seq: c.seq}}
	if err := e.batch(nil); err != nil {
		return false, err
	}
	if err := c.exchange(&e, func(header, kernelError) error { return nil }); err != nil {
		return false, err
	}
	w := watcher{portID: c.portID.Load(), owns: func(id nft.TableID) bool {
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

func (c *Conn) forget(dumped []Table) {
	c.tables.update(func(tables map[nft.TableID]bool) {
		for id := range tables {
			if !slices.ContainsFunc(dumped, func(t Table) bool { return t.ID == id }) {
				delete(tables, id)
			}
		}
	})
}

func (c *Conn) dumpTables() ([]Table, error) {
	infos, err := c.listTables()
	if err != nil {
		return nil, err
	}
	var tables []Table
	for _, info := range infos {
		if !info.Ours {
			continue
		}
		_, owned := c.tables.lookup(info.ID)
		t := Table{ID: info.ID, Comment: info.Comment, Owned: owned, Dormant: info.Dormant}
		if err := c.dumpContents(&t); err != nil {
			return nil, fmt.Errorf("table %s: %w", info.ID, err)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

func (l *link) dumpContents(t *Table) (err error) {
	if t.Chains, err = l.dumpChains(t.ID); err != nil {
		return err
	}
	if t.Sets, err = l.dumpSets(t.ID); err != nil {
		return err
	}
	t.Objects, err = list(l.dump, unix.NFT_MSG_GETOBJ, t.ID, named(t.ID.Name, 0, ""), decodeObject)
	if err != nil {
		return err
	}
	// nil for kinds unknown to nft 1.0.6
	t.Objects = slices.DeleteFunc(t.Objects, func(o *object.Object) bool { return o == nil })
	t.Flowtables, err = list(l.dump, unix.NFT_MSG_GETFLOWTABLE, t.ID, named(t.ID.Name, 0, ""), decodeFlowtable)
	return err
}

func (l *link) listTables() ([]TableInfo, error) {
	return list(l.dump, unix.NFT_MSG_GETTABLE, nft.TableID{Family: unix.AF_UNSPEC}, nil, decodeTable)
}

func (l *link) table(id nft.TableID) (t TableInfo, err error) {
	err = l.request(msgType(unix.NFT_MSG_GETTABLE), 0, id.Family, named(id.Name, 0, ""), func(m reply) (err error) {
		t, err = decodeTable(m)
		return err
	})
	if err != nil {
		return TableInfo{}, fmt.Errorf("get table %s: %w", id, err)
	}
	return t, nil
}

// The kernel always lists the chains of the whole family.
func (l *link) listChains(id nft.TableID) ([]*object.Chain, error) {
	return list(l.dump, unix.NFT_MSG_GETCHAIN, id, nil, decodeChain)
}

func listRules[T any](l *link, id nft.TableID, chain string, decode func(reply) (T, error)) ([]T, error) {
	return list(l.dumpInTable, unix.NFT_MSG_GETRULE, id, named(id.Name, unix.NFTA_RULE_CHAIN, chain), decode)
}

func (l *link) dumpChains(id nft.TableID) ([]Chain, error) {
	decls, err := l.listChains(id)
	if err != nil {
		return nil, err
	}
	rules, err := listRules(l, id, "", decodeRule)
	if err != nil {
		return nil, err
	}
	byChain := make(map[string][]Rule, len(decls))
	for _, r := range rules {
		byChain[r.chain] = append(byChain[r.chain], Rule{Handle: &Handle{N: r.handle}, Info: r.info, Writes: r.writes})
	}
	chains := make([]Chain, len(decls))
	for i, decl := range decls {
		chains[i] = Chain{Decl: decl, Rules: byChain[decl.Name]}
	}
	return chains, nil
}

func (l *link) dumpSets(id nft.TableID) ([]Set, error) {
	decls, err := list(l.dump, unix.NFT_MSG_GETSET, id, named(id.Name, 0, ""), decodeSet)
	if err != nil {
		return nil, err
	}
	var sets []Set
	for _, decl := range decls {
		if decl.Flags&unix.NFT_SET_ANONYMOUS != 0 {
			continue
		}
		elements, err := l.dumpElements(id, decl)
		if err != nil {
			return nil, fmt.Errorf("list elements of set %s: %w", decl.Name, err)
		}
		sets = append(sets, Set{Decl: decl, Elements: elements})
	}
	return sets, nil
}

// The kernel resumes a dump by skipping the number of elements already sent. If it resizes a hash
// table meanwhile, the dump repeats some elements and lacks as many, without NLM_F_DUMP_INTR. So a
// dump with duplicates is repeated, unless elements come and go by themselves.
func (l *link) dumpElements(id nft.TableID, set *set.Set) ([]set.Element, error) {
	const volatile = unix.NFT_SET_TIMEOUT | unix.NFT_SET_EVAL
	d, tries := newElementDecoder(set), maxInterrupted
	if set.Flags&volatile != 0 {
		tries = 1
	}
	duplicates, err := l.readElements(d, id, tries)
	switch {
	case err != nil:
		return nil, err
	case duplicates && tries > 1:
		return nil, ErrBusy
	}
	return d.finish(), nil
}

func (l *link) readElements(d *elementDecoder, id nft.TableID, tries int) (duplicates bool, err error) {
	names := named(id.Name, unix.NFTA_SET_ELEM_LIST_SET, d.set.Name)
	for range tries {
		if err := l.dumpInTable(unix.NFT_MSG_GETSETELEM, id.Family, names, d.reset, d.message); err != nil {
			return false, err
		}
		if !d.dedupe() {
			return false, nil
		}
	}
	return true, nil
}
