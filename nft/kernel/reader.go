package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Reader reads the tables of all programs over its own socket. It belongs to one goroutine.
type Reader struct{ link }

// OpenReader opens a Reader. Errors are those of the system calls.
func OpenReader(cfg Config) (*Reader, error) {
	sock, err := dial(cfg.NetNS)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	return &Reader{link{netNS: cfg.NetNS, sock: sock, seq: 1}}, nil
}

// Close closes the socket. Later calls fail.
func (r *Reader) Close() error {
	if err := r.sock.close(); err != nil {
		return fmt.Errorf("close nftables: %w", err)
	}
	return nil
}

// Program is a table of any program, without rules and elements.
type Program struct {
	TableInfo
	Chains []*object.Chain
	// Sets include anonymous sets, with names such as __set0.
	Sets []ProgramSet
}

// ProgramRule is a rule; Info.Ours is false for foreign ones.
type ProgramRule struct {
	Handle uint64
	Info   userdata.RuleInfo
	Exprs  []expr.Expr
}

// ProgramSet is a set. If Err is set, Decl has only the name.
type ProgramSet struct {
	Decl *set.Set
	Err  error
}

// Programs reads all tables, in order of creation. Simultaneous changes can mix contents. Errors
// are as for Conn.Survey.
func (r *Reader) Programs() ([]Program, error) {
	infos, err := r.listTables()
	if err != nil {
		return nil, fmt.Errorf("read ruleset: %w", err)
	}
	var out []Program
	for _, info := range infos {
		p := Program{TableInfo: info}
		if p.Chains, err = r.listChains(p.ID); err == nil {
			p.Sets, err = list(r.dump, unix.NFT_MSG_GETSET, p.ID, named(p.ID.Name, 0, ""), decodeProgramSet)
		}
		switch {
		case errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return nil, fmt.Errorf("read table %s: %w", info.ID, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// Rules reads the rules of a chain, in order; a missing chain is not an error. Errors are as for
// Conn.Survey.
func (r *Reader) Rules(table nft.TableID, chain string) ([]ProgramRule, error) {
	rules, err := listRules(&r.link, table, chain, decodeProgramRule)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("read chain %s of table %s: %w", chain, table, err)
	}
	return rules, nil
}

func decodeProgramRule(m reply) (ProgramRule, error) {
	r, exprs, err := readRule(m)
	out := ProgramRule{Handle: r.handle, Info: r.info}
	if err != nil {
		return out, err
	}
	if out.Exprs, err = expr.Decode(exprs); err != nil {
		return out, fmt.Errorf("handle %d: %w", r.handle, err)
	}
	return out, nil
}

func decodeProgramSet(m reply) (ProgramSet, error) {
	decl, err := decodeSet(m)
	if err == nil {
		return ProgramSet{Decl: decl}, nil
	}
	name, ok := attr.Find(m.attrs, unix.NFTA_SET_NAME)
	if !ok {
		return ProgramSet{}, err
	}
	return ProgramSet{Decl: &set.Set{Name: name.Text()}, Err: err}, nil
}

// Elements is Conn.DumpSet for a set or map of any program.
func (r *Reader) Elements(table nft.TableID, s *set.Set) ([]set.Element, error) {
	d := newElementDecoder(s)
	if _, err := r.readElements(d, table, maxSetReads); err != nil {
		return nil, fmt.Errorf("read set %s of table %s: %w", s.Name, table, err)
	}
	return d.finish(), nil
}

// Element returns the element of a packed key, or the catch-all element. KeyEnd is empty if the
// next interval follows without a gap.
func (r *Reader) Element(table nft.TableID, s *set.Set, key string) (e set.Element, ok bool, err error) {
	d := newElementDecoder(s)
	for _, flags := range []uint32{0, setElemCatchall} {
		found, err := r.element(d, table, key, flags)
		if err != nil {
			return e, false, fmt.Errorf("get element of set %s of table %s: %w", s.Name, table, err)
		}
		if !found {
			continue
		}
		e = d.elements[0]
		if !d.ranges || flags != 0 {
			return e, true, nil
		}
		if found, err = r.element(d, table, key, setElemIntervalEnd); err != nil {
			return e, false, fmt.Errorf("get end of an interval of set %s of table %s: %w", s.Name, table, err)
		}
		if found && len(d.ends) > 0 {
			e.KeyEnd = set.Before(d.ends[0])
		}
		return e, true, nil
	}
	return e, false, nil
}

func (r *Reader) element(d *elementDecoder, table nft.TableID, key string, flags uint32) (found bool, err error) {
	b := named(table.Name, unix.NFTA_SET_ELEM_LIST_SET, d.set.Name)
	b, elements := attr.OpenNested(b, unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	b, one := attr.OpenNested(b, unix.NFTA_LIST_ELEM)
	if flags != 0 {
		b = attr.AppendUint32BE(b, unix.NFTA_SET_ELEM_FLAGS, flags)
	}
	if flags&setElemCatchall == 0 {
		b = expr.AppendData(b, unix.NFTA_SET_ELEM_KEY, key)
	}
	b = attr.Close(attr.Close(b, one), elements)
	d.reset()
	err = r.request(msgType(unix.NFT_MSG_GETSETELEM), 0, table.Family, b, d.message)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil && len(d.elements)+len(d.ends) > 0, err
}
