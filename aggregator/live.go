package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// maxLiveElements limits how many elements one GetTable reads from the kernel.
const maxLiveElements = 1 << 18

// dumpLive reads the live values of a merged table. At most one call reads at a time, so
// that callers cannot multiply the memory and the time of the kernel that it costs.
//
// Possible errors: ErrNoObject, ErrKernel, ctx's.
func (a *Aggregator) dumpLive(ctx context.Context, id nft.TableID, req *weftv1.GetTableRequest, merged *desired.Merged) (*kernel.Live, error) {
	select {
	case a.liveDump <- struct{}{}:
		defer func() { <-a.liveDump }()
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
	read := func() (*kernel.Live, error) { return a.cfg.Kernel.DumpLive(id, sets, maxLiveElements) }
	switch {
	case !req.GetObjectsOnly():
	case len(sets) == 0:
		read = func() (*kernel.Live, error) { return a.cfg.Kernel.DumpObjects(id) }
	default:
		read = func() (*kernel.Live, error) {
			return a.cfg.Kernel.DumpElements(id, sets, maxLiveElements, req.GetCounted())
		}
	}
	live, err := read()
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("%w: weft has no table %s any more", ErrNoObject, id)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKernel, err)
	}
	return live, nil
}

// splitLive divides the elements of a set into those that fragments have, with their
// state in the kernel, and those that packets have added. The merged elements must be
// ordered by compareElements. Elements that have expired are left out.
func splitLive(merged []set.Element, live kernel.LiveElements) (inForce, added []set.Element) {
	slices.SortFunc(live.Elements, compareElements)
	for _, e := range live.Elements {
		for len(merged) > 0 && compareElements(merged[0], e) < 0 {
			if live.More {
				inForce = append(inForce, merged[0])
			}
			merged = merged[1:]
		}
		if len(merged) > 0 && compareElements(merged[0], e) == 0 {
			inForce, merged = append(inForce, e), merged[1:]
		} else {
			added = append(added, e)
		}
	}
	if live.More {
		inForce = append(inForce, merged...)
	}
	return inForce, added
}
