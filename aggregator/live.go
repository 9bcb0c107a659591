package aggregator

import (
	"context"
	"errors"
	"fmt"

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
	read := func() (*kernel.Live, error) { return rs.cfg.Kernel.DumpLive(id, sets, maxLiveElements) }
	switch {
	case !req.GetObjectsOnly():
	case len(sets) == 0:
		read = func() (*kernel.Live, error) { return rs.cfg.Kernel.DumpObjects(id) }
	default:
		read = func() (*kernel.Live, error) {
			return rs.cfg.Kernel.DumpElements(id, sets, maxLiveElements, req.GetCounted())
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
