package aggregator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/events"
	"github.com/weft-proxy/weft/aggregator/findings"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Reader selects the publishers whose content a reader sees.
type Reader = desired.Reader

// Reads answers readers. It is safe for concurrent use. Methods wait while the aggregator starts, except
// List, ListPublishers and Watch.
type Reads struct {
	life        *Life
	cfg         *Config
	statuses    *status.Fragments
	roster      *status.Publishers
	unconfirmed *unconfirmed.Keeper
	inspector   *findings.Inspector
	history     *history.Recorder
	hub         *events.Hub
	scope       *atomic.Pointer[merge.Scope]
	requests    chan func(*writer)
	liveDump    chan struct{}
}

func newReads(a *Aggregator) *Reads {
	return &Reads{
		life: a.Life, cfg: &a.cfg, statuses: a.statuses, roster: a.roster, unconfirmed: a.unconfirmed, inspector: a.inspector,
		history: a.history, hub: a.hub, scope: &a.scope, requests: a.requests, liveDump: make(chan struct{}, 1),
	}
}

// ask calls f on the writer's goroutine between two commits. Values copied by f are read-only. The caller,
// not f, converts them, because commits wait for f. Possible errors: ErrStandby, ErrStopped, ctx's.
func (rs *Reads) ask(ctx context.Context, f func(*writer)) error {
	if err := rs.life.Healthy(); err != nil {
		return err
	}
	done := make(chan struct{})
	select {
	case rs.requests <- func(w *writer) {
		defer close(done)
		f(w)
	}:
	case <-rs.life.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}

// List returns the status of all fragments, by publisher and name, and the last revision, also during the
// start and on standby. The messages are read-only.
func (rs *Reads) List() (fragments []*weftv1.FragmentStatus, revision uint64) {
	fragments, revision = rs.statuses.List()
	for i, f := range fragments {
		fragments[i] = rs.present(f)
	}
	return fragments, revision
}

// Get returns one fragment's status and its committed content in lazily made parts. An adopted fragment has
// only names and the elements of sets.
//
// Possible errors: ErrInvalidName, ErrNotFound, ErrStandby, ErrStopped, ctx's.
func (rs *Reads) Get(ctx context.Context, publisher, name string) (*weftv1.FragmentStatus, iter.Seq[*weftv1.Fragment], error) {
	key := desired.Key{Publisher: publisher, Name: name}
	if err := admission.CheckKey(key); err != nil {
		return nil, nil, err
	}
	var status *weftv1.FragmentStatus
	var tables []desired.TableUpdate
	if err := rs.ask(ctx, func(w *writer) { status = w.tell.statuses.Get(key); tables, _ = views.Content(w.state, key) }); err != nil {
		return nil, nil, err
	}
	if status == nil {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return rs.present(status), message.FragmentParts(message.Head(name, status.GetPriority(), status.GetLifetime(), status.GetExpireTime()), tables, time.Time{}, message.PartBytes), nil
}

// ListTables returns the tables with content visible to a reader, by family and name.
//
// Possible errors: ErrStandby, ErrStopped, ctx's.
func (rs *Reads) ListTables(ctx context.Context, r Reader) (*weftv1.ListTablesResponse, error) {
	var tables []desired.TableStatus
	resp := &weftv1.ListTablesResponse{}
	if err := rs.ask(ctx, func(w *writer) { tables, resp.Revision = views.Tables(w.state, r), w.revision }); err != nil {
		return nil, err
	}
	for i := range tables {
		resp.Tables = append(resp.Tables, message.TableStatus(&tables[i]))
	}
	return resp, nil
}

// GetTable returns the merged content of a table as visible to a reader, in lazily made parts. The text of
// an adopted rule is unknown. An empty family is ip.
//
// Possible errors: ErrInvalidName (the family), ErrNoObject, ErrHidden, ErrStandby, ErrStopped, ctx's; with
// live also ErrKernel.
func (rs *Reads) GetTable(ctx context.Context, req *weftv1.GetTableRequest, r Reader) (iter.Seq[*weftv1.GetTableResponse], error) {
	id, err := tableID(req.GetFamily(), req.GetName())
	if err != nil {
		return nil, err
	}
	v := message.Table{Reader: r, Live: &kernel.Live{}, Counted: req.GetCounted() && req.GetLive() && req.GetObjectsOnly()}
	exists := false
	detail, sets := detailOf(req), make(map[string]struct{})
	for _, name := range req.GetSets() {
		sets[name] = struct{}{}
	}
	if err := rs.ask(ctx, func(w *writer) {
		v.Revision = w.revision
		v.Merged, exists = views.Merged(w.state, id, detail, r, sets)
	}); err != nil {
		return nil, err
	}
	switch {
	case v.Merged != nil:
	case exists:
		return nil, fmt.Errorf("%w: table %s", ErrHidden, admission.Clip(id.String()))
	default:
		return nil, fmt.Errorf("%w: weft has no table %s", ErrNoObject, admission.Clip(id.String()))
	}
	if req.GetLive() {
		if v.Live, err = rs.dumpLive(ctx, id, req, v.Merged); err != nil {
			return nil, err
		}
	}
	return v.Parts(message.PartBytes), nil
}

func detailOf(req *weftv1.GetTableRequest) desired.Detail {
	switch {
	case req.GetObjectsOnly():
		return desired.DetailObjects
	case req.GetTerse():
		return desired.DetailRules
	default:
		return desired.DetailElements
	}
}

func tableID(family, name string) (nft.TableID, error) {
	f, err := nft.ParseFamily(family)
	if err != nil {
		return nft.TableID{}, fmt.Errorf("%w: %w", ErrInvalidName, err)
	}
	return nft.TableID{Family: f, Name: name}, nil
}

// ListPublishers returns the publishers with fragments or connections, by name, also during the start.
//
// Possible errors: ErrStandby, ErrStopped.
func (rs *Reads) ListPublishers() (*weftv1.ListPublishersResponse, error) {
	if err := rs.life.Healthy(); err != nil {
		return nil, err
	}
	all := make(map[string]*weftv1.PublisherStatus)
	fragments, _ := rs.List()
	for _, f := range fragments {
		p := status.Of(all, f.GetFragment().GetPublisher())
		p.Fragments++
		if f.GetState() == weftv1.FragmentStatus_STATE_ADOPTED {
			p.Adopted++
		}
		p.Rules += f.GetRules()
		p.Elements += f.GetElements()
		p.Shadowed += f.GetShadowed()
	}
	rs.roster.Report(all)
	for name, p := range all {
		holds := rs.statuses.Holds(name)
		holds.Bytes += rs.unconfirmed.Kept(name)
		p.Limits = status.Limits(rs.cfg.Access.Publisher(name), holds, len(p.GetSessions()))
	}
	out := &weftv1.ListPublishersResponse{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out.Publishers = append(out.Publishers, all[name])
	}
	return out, nil
}

// Watch calls started and then f with every event, as in events.Hub.
//
// Possible errors: ErrSlowWatcher, ErrStopped, started's, f's, ctx's.
func (rs *Reads) Watch(ctx context.Context, started func() error, f func(*weftv1.WatchResponse) error) error {
	return rs.hub.Watch(ctx, started, f)
}

func (rs *Reads) present(st *weftv1.FragmentStatus) *weftv1.FragmentStatus {
	key := message.Key(st.GetFragment())
	at, waits := rs.unconfirmed.Waits(key)
	found := rs.inspector.Of(key)
	if (!waits || at.IsZero()) && len(found) == 0 {
		return st
	}
	st = proto.CloneOf(st)
	st.Findings = found
	if waits && !at.IsZero() {
		st.RevertTime = timestamppb.New(at)
	}
	return st
}

// maxLiveElements limits the elements read by one GetTable.
const maxLiveElements = 1 << 18

// dumpLive runs once at a time, to bound the kernel's memory and time.
//
// Possible errors: ErrNoObject, ErrKernel, ctx's.
func (rs *Reads) dumpLive(ctx context.Context, id nft.TableID, req *weftv1.GetTableRequest, merged *desired.Merged) (*kernel.Live, error) {
	select {
	case rs.liveDump <- struct{}{}:
		defer func() { <-rs.liveDump }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var sets []*set.Set
	for i := range merged.Sets {
		s := merged.Sets[i].Decl
		if merged.Sets[i].Elements != nil && (s.Flags&(unix.NFT_SET_TIMEOUT|unix.NFT_SET_EVAL) != 0 || len(s.Stateful) > 0) {
			sets = append(sets, s)
		}
	}
	q := kernel.LiveQuery{Rules: !req.GetObjectsOnly(), Sets: sets, Limit: maxLiveElements, Counted: req.GetObjectsOnly() && req.GetCounted()}
	live, err := rs.cfg.Kernel.DumpLive(id, q)
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("%w: weft has no table %s any more", ErrNoObject, id)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKernel, err)
	}
	return live, nil
}

// Owner returns the fragments of a kernel object that are visible to a reader, in merge order. An adopted
// object of an unknown fragment has an owner without a name. An empty family is ip.
//
// Possible errors: ErrInvalidName (the family, or an element's key), ErrProtocol (not one object),
// ErrNoObject, ErrHidden, ErrStandby, ErrStopped, ErrGone, ctx's.
func (rs *Reads) Owner(ctx context.Context, req *weftv1.OwnerRequest, r Reader) (*weftv1.OwnerResponse, error) {
	id, err := tableID(req.GetObject().GetFamily(), req.GetObject().GetTable())
	if err != nil {
		return nil, err
	}
	n := req.GetObject()
	if n.GetTable() == "" {
		return nil, fmt.Errorf("%w: the table has no name", ErrProtocol)
	}
	if (n.GetName() == "") != (n.GetKind() == "table") {
		return nil, fmt.Errorf("%w: a %s is named %q", ErrProtocol, admission.Clip(n.GetKind()), admission.Clip(n.GetName()))
	}
	q := ownerQuery{id: id, name: n}
	var find func(*merge.State)
	switch n.GetKind() {
	case "table":
		find = func(s *merge.State) { q.owners, q.found = views.OwnersOfTable(s, id) }
	case "rule":
		if n.GetHandle() == 0 {
			return nil, fmt.Errorf("%w: the rule has no handle", ErrProtocol)
		}
		q.owners = make([]desired.Owned, 1)
		find = func(s *merge.State) { q.owners[0], q.found = views.OwnerOfRule(s, id, n.GetName(), n.GetHandle()) }
	case "element":
		if find, err = rs.elementOwner(ctx, &q); err != nil {
			return nil, err
		}
	default:
		ref := object.Ref{Kind: nft.ObjectKind(n.GetKind()), Name: n.GetName()}
		if n.GetKind() == "map" {
			ref.Kind = "set"
		}
		find = func(s *merge.State) { q.owners, q.addition, q.found = views.Owners(s, id, ref) }
	}
	if err := rs.ask(ctx, func(w *writer) { find(w.state) }); err != nil {
		return nil, err
	}
	return q.answer(r)
}

type ownerQuery struct {
	id     nft.TableID
	name   *weftv1.ObjectName
	owners []desired.Owned
	found  bool
	set    *set.Set
	// addition adds the chain, set or object.
	addition kernel.Op
}

// elementOwner packs the key with the declaration known to admission, so that the writer does not parse.
func (rs *Reads) elementOwner(ctx context.Context, q *ownerQuery) (find func(*merge.State), _ error) {
	if err := rs.life.admitting(ctx.Done()); err != nil {
		return nil, err
	}
	set, ok := rs.scope.Load().Table(q.id).Set(q.name.GetName())
	if !ok {
		return func(*merge.State) {}, nil
	}
	if len(q.name.GetKey()) > admission.MaxElementText {
		return nil, fmt.Errorf("%w: the key has %d bytes: at most %d are allowed", ErrInvalidName, len(q.name.GetKey()), admission.MaxElementText)
	}
	e, err := set.PackKey(q.name.GetKey())
	if err != nil {
		return nil, fmt.Errorf("%w: element %s of %s %s: %w", ErrInvalidName, admission.Clip(q.name.GetKey()), admission.SetKind(set.Map), set.Name, err)
	}
	q.set = set
	return func(s *merge.State) { q.owners, q.found = views.OwnersOfElement(s, q.id, set.Name, e) }, nil
}

func (q *ownerQuery) answer(r Reader) (*weftv1.OwnerResponse, error) {
	if !q.found {
		return nil, fmt.Errorf("%w: weft has no %s", ErrNoObject, admission.Clip(q.name.Text()))
	}
	owners := len(q.owners)
	q.owners = slices.DeleteFunc(q.owners, func(o desired.Owned) bool { return !r.Sees(o.Fragment.Publisher) })
	if len(q.owners) == 0 && owners > 0 {
		return nil, fmt.Errorf("%w: %s", ErrHidden, admission.Clip(q.name.Text()))
	}
	resp := &weftv1.OwnerResponse{}
	for i := range q.owners {
		o := &q.owners[i]
		resp.Owners = append(resp.Owners, &weftv1.ObjectOwner{
			Fragment: message.Name(o.Fragment), Priority: o.Priority,
			Text: q.text(o), Index: uint32(o.Index), //nolint:gosec // a count
		})
	}
	return resp, nil
}

func (q *ownerQuery) text(o *desired.Owned) string {
	switch {
	case o.Rule != nil:
		return strings.TrimSpace(strings.TrimPrefix(message.RuleText(q.id, q.name.GetName(), o.Rule), fmt.Sprintf("rule %s %s", q.id, q.name.GetName())))
	case q.set != nil:
		text := q.set.FormatKey(o.Element)
		if left := o.Element.Expires(); left != 0 {
			text += " expires " + datatype.FormatDuration(max(left.Round(time.Second), time.Second))
		}
		if q.set.Map {
			text += " : " + q.set.FormatData(o.Element)
		}
		return text
	case q.addition != nil:
		return message.Noun(q.addition)
	default:
		return "table " + q.id.String()
	}
}
