package aggregator

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// List returns the status of all fragments, ordered by publisher and name, and
// the last revision. It returns what is known at once, also during the start and on
// standby. The messages are shared: they must not be changed.
func (rs *Reads) List() (fragments []*weftv1.FragmentStatus, revision uint64) {
	fragments, revision = rs.statuses.List()
	for i, f := range fragments {
		fragments[i] = rs.present(f)
	}
	return fragments, revision
}

// Get returns one fragment's status and its committed content in canonical form,
// in parts of about 128 KiB, which are made when they are wanted. It waits while the aggregator starts. Of an adopted
// fragment, which has not come back since a restart, only what the kernel holds is
// known: names, and the elements of sets.
//
// Possible errors: ErrInvalidName, ErrNotFound, ErrStandby, ErrStopped, ctx's.
func (rs *Reads) Get(ctx context.Context, publisher, name string) (*weftv1.FragmentStatus, iter.Seq[*weftv1.Fragment], error) {
	key := desired.Key{Publisher: publisher, Name: name}
	if err := admission.CheckKey(key); err != nil {
		return nil, nil, err
	}
	var status *weftv1.FragmentStatus
	var tables []desired.TableUpdate
	// Nothing of them changes, so that this goroutine can sort them and make messages.
	if err := rs.ask(ctx, func(w *writer) { status = w.statuses.Get(key); tables, _ = w.state.Content(key) }); err != nil {
		return nil, nil, err
	}
	if status == nil {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return rs.present(status), message.FragmentParts(message.Head(name, status.GetPriority(), status.GetLifetime(), status.GetExpireTime()), tables, time.Time{}, message.PartBytes), nil
}

// ListTables returns the tables that weft has in the kernel and in which a reader sees
// something, by family and name. It waits while the aggregator starts.
//
// Possible errors: ErrStandby, ErrStopped, ctx's.
func (rs *Reads) ListTables(ctx context.Context, r Reader) (*weftv1.ListTablesResponse, error) {
	var tables []desired.TableStatus
	resp := &weftv1.ListTablesResponse{}
	if err := rs.ask(ctx, func(w *writer) { tables, resp.Revision = w.state.Tables(r), w.revision }); err != nil {
		return nil, err
	}
	for i := range tables {
		resp.Tables = append(resp.Tables, message.TableStatus(&tables[i]))
	}
	return resp, nil
}

// GetTable returns what a reader sees of the merged content of a table, in parts of about
// 128 KiB, which are made when they are wanted. The text of a rule from before a restart is
// not known until its publisher is back. An empty family is ip. GetTable waits while the
// aggregator starts.
//
// Possible errors: ErrInvalidName (the family), ErrNoObject, ErrHidden, ErrStandby,
// ErrStopped, ctx's; with live also ErrKernel.
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
	if err := rs.ask(ctx, func(w *writer) { v.Revision = w.revision; v.Merged, exists = w.state.Merged(id, detail, r, sets) }); err != nil {
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

// detailOf returns how much of a table is asked for.
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

// ListPublishers returns the publishers that have fragments or are connected,
// by name. It does not wait while the aggregator starts.
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

// Watch calls f with every event from now on until ctx ends or f fails, and returns that error. It
// calls started first, when it already collects events, and returns its error, too. started must not
// be nil. f must not change the event.
//
// Possible errors: ErrSlowWatcher, ErrStopped, started's, f's, ctx's.
func (rs *Reads) Watch(ctx context.Context, started func() error, f func(*weftv1.WatchResponse) error) error {
	return rs.hub.Watch(ctx, started, f)
}

// present returns a status with the findings of the fragment, and the time of its revert if it waits for
// a confirmation.
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
