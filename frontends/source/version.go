package source

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
)

const versionPath = "/version"

// followVersion asks once per connection, because another server may have another version. The request's own
// connection does not count. It repeats a failed request, unless it is forbidden.
func (k *Kube) followVersion(ctx context.Context) {
	var again <-chan time.Time
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-k.client.connected:
		case <-again:
		}
		again = nil
		v, err := k.version(ctx)
		switch {
		case err == nil:
			for _, u := range k.versioned {
				u.mu.Lock()
				u.Version(v)
				u.mu.Unlock()
			}
		case ctx.Err() == nil:
			k.log.Warn("cannot read the API server's version: keeping the last one", "error", err)
			if !apierrors.IsForbidden(err) {
				again = time.After(wait.Jitter(k.retryAbsent, 1))
			}
		}
		if first {
			close(k.asked)
		}
	}
}

// version returns the version whose features the server has: the emulated one, if it emulates an older version.
func (k *Kube) version(ctx context.Context) (*version.Version, error) {
	info, err := k.client.typed.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return nil, err
	}
	// Providers write a minor version such as "39+".
	text := cmp.Or(info.EmulationMajor, info.Major) + "." + strings.TrimSuffix(cmp.Or(info.EmulationMinor, info.Minor), "+")
	v, err := version.ParseMajorMinor(text)
	if err != nil {
		return nil, fmt.Errorf("read the API server's version %q: %w", text, err)
	}
	return v, nil
}
