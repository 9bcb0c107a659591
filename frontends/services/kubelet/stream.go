package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// In bytes. etcd limits a pod to 1.5 MiB.
const (
	maxMessage = 4 << 20
	maxHeaders = 64 << 10
)

// follow works until the stream ends or is ended, and always returns an error. synced means that the kubelet
// has reported all its pods, within wait.
func (f *Follower) follow(ctx context.Context, wait time.Duration) (synced bool, err error) {
	conn, err := grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", f.cfg.Socket)
		}),
		grpc.WithAuthority("localhost"), grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return false, fmt.Errorf("connect to the kubelet: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	listed := make(chan struct{})
	wg.Go(func() { f.limit(ctx, cancel, listed, wait) })
	stream, err := podsv1alpha1.NewPodsClient(conn).WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	all := make(map[model.PodID]model.PodState)
	for err == nil {
		var e *podsv1alpha1.WatchPodsEvent
		if e, err = stream.Recv(); err != nil {
			break
		}
		switch {
		case e.GetType() == podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE && !synced:
			synced = true
			f.replace(all)
			close(listed)
		case len(e.GetPod()) > 0:
			pod, state, err := parsePod(e.GetPod())
			if e.GetType() == podsv1alpha1.EventType_DELETED {
				state = model.PodGone
			}
			switch {
			case err != nil:
			case synced:
				err = f.set(pod, state)
			default:
				err = put(all, pod, state)
			}
			if err != nil {
				return synced, err
			}
		}
	}
	return synced, cmp.Or(context.Cause(ctx), fmt.Errorf("watch pods at the kubelet: %s", status.Convert(err).Message()))
}

// limit ends a stream that is late, and later one whose endpoints are held out for a while.
func (f *Follower) limit(ctx context.Context, end context.CancelCauseFunc, listed <-chan struct{}, wait time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(wait):
		end(errSilent)
		return
	case <-listed:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.review):
			if f.cfg.HeldOut() > 0 {
				end(errReview)
				return
			}
		}
	}
}
