package kubelet

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

const (
	added    = podsv1alpha1.EventType_ADDED
	modified = podsv1alpha1.EventType_MODIFIED
	removed  = podsv1alpha1.EventType_DELETED
)

// TestFollow follows a kubelet's list and events.
//
// Behaviour: 171, 172.
func TestFollow(t *testing.T) {
	k := newPods(t, message(t, "a"), message(t, "b", notReady))
	f := follow(t, k.socket)
	f.await(t, "the list", "ac")
	publishtest.Await(t, "no error", func() bool { return f.Err() == nil })
	k.send(modified, message(t, "a", notReady))
	f.await(t, "a is not ready", "c")
	k.send(modified, message(t, "b"))
	f.await(t, "b is ready", "bc")
	k.send(added, message(t, "c", deleted))
	k.send(removed, message(t, "b", func(p *corev1.Pod) { p.Status, p.Annotations = corev1.PodStatus{}, nil }))
	f.await(t, "b is gone, c serves while it terminates", "c")
	k.send(modified, message(t, "c", deleted, notReady))
	f.await(t, "c does not serve", "")
}

// TestOnlyChangesOfReadiness: the model hears of a pod only if its readiness changes.
//
// Behaviour: 175.
func TestOnlyChangesOfReadiness(t *testing.T) {
	k := newPods(t, message(t, "a"), message(t, "b"))
	f := follow(t, k.socket)
	publishtest.Await(t, "the list", func() bool { return f.Err() == nil })
	for i := range 100 {
		k.send(modified, message(t, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"n": fmt.Sprint(i)} }))
		k.send(added, message(t, fmt.Sprint("other-", i)))
	}
	k.send(modified, message(t, "b", notReady))
	f.await(t, "b is not ready", "ac")
	f.mu.Lock()
	defer f.mu.Unlock()
	publishtest.Equal(t, "deliveries: the list and one pod", f.deliveries, 2)
}

// TestDisconnected: what was known holds for the grace, or until the kubelet lists its pods again. A kubelet
// that starts knows nothing.
//
// Behaviour: 174.
func TestDisconnected(t *testing.T) {
	k := newPods(t, message(t, "a", notReady))
	f := follow(t, k.socket, func(f *Follower) { f.grace = time.Hour })
	f.await(t, "the list", "bc")
	k.change(func() { k.starting = true })
	k.server.Stop()
	publishtest.Await(t, "the socket is away", func() bool { return f.Err() != nil })
	f.await(t, "during the grace", "bc")
	k.start(t)
	publishtest.Await(t, "the kubelet starts", func() bool {
		err := f.Err()
		return err != nil && strings.Contains(err.Error(), "Kubelet is initializing")
	})
	f.await(t, "during the grace", "bc")
	k.change(func() { k.starting, k.list = false, [][]byte{message(t, "a"), message(t, "b", notReady)} })
	f.await(t, "another list", "ac")
}

// TestGraceEnds: the API decides once the grace is over, whatever keeps the kubelet from its list.
//
// Behaviour: 174.
func TestGraceEnds(t *testing.T) {
	for name, change := range map[string]func(*pods){
		"starting": func(k *pods) { k.starting = true }, "silent": func(k *pods) { k.silent = true },
		"broken": func(k *pods) { k.list = append(k.list, []byte{0xff}) }, "away": func(*pods) {},
	} {
		t.Run(name, func(t *testing.T) {
			k := newPods(t, message(t, "a", notReady))
			f := follow(t, k.socket, func(f *Follower) { f.grace = 200 * time.Millisecond })
			f.await(t, "the list", "bc")
			k.change(func() { change(k) })
			k.server.Stop()
			if name != "away" {
				k.start(t)
			}
			f.await(t, "after the grace", "abc")
			if f.Err() == nil {
				t.Error("the kubelet's word does not count, without an error")
			}
		})
	}
}

// TestReview: while an endpoint is held out the pods are listed again, so that a lost event keeps no endpoint
// out. A kubelet that hangs then loses its word.
//
// Behaviour: 174.
func TestReview(t *testing.T) {
	k := newPods(t, message(t, "a", notReady), message(t, "b"))
	f := follow(t, k.socket, func(f *Follower) { f.review = 20 * time.Millisecond; f.grace = 300 * time.Millisecond })
	f.await(t, "the list", "bc")
	k.change(func() { k.list = [][]byte{message(t, "a"), message(t, "b", notReady)} })
	f.await(t, "another list", "ac")
	count := func() (n int) { k.change(func() { n = k.count }); return n }
	before := count()
	publishtest.Await(t, "lists go on", func() bool { return count() > before+2 })
	publishtest.Equal(t, "error", fmt.Sprint(f.Err()), "<nil>")
	k.change(func() { k.silent = true })
	f.await(t, "no list", "abc")
}

// TestHostile: what no kubelet sends ends the connection with an error, and the API decides.
//
// Behaviour: 176.
func TestHostile(t *testing.T) {
	var many [][]byte
	for i := range maxPods + 1 {
		many = append(many, message(t, fmt.Sprint("pod-", i), notReady))
	}
	field := func(n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), v)
	}
	for name, tt := range map[string]struct {
		list [][]byte
		want string
	}{
		"no message":    {[][]byte{{0xff, 0xff}}, "decode pod"},
		"wrong type":    {[][]byte{{podMeta << 3, 1}}, "decode pod"},
		"no name":       {[][]byte{field(podMeta, nil)}, "want 1 to 253 bytes each"},
		"long name":     {[][]byte{message(t, strings.Repeat("x", 300))}, "want 1 to 253 bytes each"},
		"too many":      {many, "the kubelet has more than 4096 pods that are not ready"},
		"too large":     {[][]byte{message(t, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"x": strings.Repeat("x", maxMessage)} })}, "larger than max"},
		"nested deeply": {[][]byte{field(podMeta, field(podMeta, field(podMeta, nil)))}, "want 1 to 253 bytes each"},
		// The last one counts.
		"two names in one": {[][]byte{append(message(t, "a"), message(t, "")...)}, "want 1 to 253 bytes each"},
	} {
		t.Run(name, func(t *testing.T) {
			f := follow(t, newPods(t, tt.list...).socket)
			publishtest.Await(t, tt.want, func() bool { err := f.Err(); return err != nil && strings.Contains(err.Error(), tt.want) })
			publishtest.Equal(t, "Services with endpoints", f.used(), "abc")
		})
	}
}

// TestManyGone: pods that have gone are forgotten with the next list, before they are too many. Ready pods do not
// count.
//
// Behaviour: 176.
func TestManyGone(t *testing.T) {
	list := [][]byte{message(t, "a", notReady)}
	for i := range maxPods + 1 {
		list = append(list, message(t, fmt.Sprint("ready-", i)))
	}
	k := newPods(t, list...)
	f := follow(t, k.socket)
	f.await(t, "the list", "bc")
	k.change(func() { k.list = [][]byte{message(t, "a"), message(t, "b", notReady)} })
	for i := range maxPods + 1 {
		k.send(removed, message(t, fmt.Sprint("gone-", i)))
	}
	f.await(t, "another list", "ac")
	publishtest.Await(t, "no error", func() bool { return f.Err() == nil })
}

// TestNoKubelet: without a socket, or with another server there, the API decides, and a kubelet that comes is
// followed.
//
// Behaviour: 174, 176.
func TestNoKubelet(t *testing.T) {
	k := newPods(t, message(t, "a", notReady))
	k.server.Stop()
	f := follow(t, k.socket, func(f *Follower) { f.grace = 200 * time.Millisecond })
	await := func(want string) {
		publishtest.Await(t, want, func() bool { err := f.Err(); return err != nil && strings.Contains(err.Error(), want) })
		publishtest.Equal(t, "Services with endpoints", f.used(), "abc")
	}
	await("no such file")
	l, err := net.Listen("unix", k.socket)
	publishtest.Must(t, err)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	await("error reading server preface")
	publishtest.Must(t, l.Close())
	publishtest.Must(t, os.RemoveAll(k.socket))
	// It accepts, and says nothing.
	mute, err := net.Listen("unix", k.socket)
	publishtest.Must(t, err)
	await(errSilent.Error())
	publishtest.Must(t, mute.Close())
	k.start(t)
	f.await(t, "a kubelet", "bc")
}

// TestState has the conditions that the kubelet sends.
//
// Behaviour: 171, 172, 174.
func TestState(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []func(*corev1.Pod)
		want    model.PodState
	}{
		{"ready", nil, model.PodReady},
		{"not ready", []func(*corev1.Pod){notReady}, model.PodNotReady},
		{"a readiness gate", []func(*corev1.Pod){conditions("False", "True", "ReadinessGatesNotReady")}, model.PodNotReady},
		{"a kubelet that has not looked yet", []func(*corev1.Pod){conditions("False", "True", notReadyReason)}, model.PodReady},
		{"the same, terminating", []func(*corev1.Pod){conditions("False", "True", notReadyReason), deleted}, model.PodServing},
		{"unknown", []func(*corev1.Pod){conditions("Unknown", "True", "")}, model.PodNotReady},
		{"no conditions", []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Conditions = nil }}, model.PodNotReady},
		{"terminating", []func(*corev1.Pod){deleted}, model.PodServing},
		{"terminating, not ready", []func(*corev1.Pod){deleted, notReady}, model.PodStopping},
		{"succeeded", []func(*corev1.Pod){phase("Succeeded"), notReady}, model.PodGone},
		{"failed", []func(*corev1.Pod){phase("Failed")}, model.PodGone},
		{"pending", []func(*corev1.Pod){phase("Pending"), notReady}, model.PodNotReady},
	} {
		pod, state, err := parsePod(message(t, "a", tt.options...))
		publishtest.Must(t, err)
		publishtest.Equal(t, tt.name, state, tt.want)
		publishtest.Equal(t, tt.name, pod, model.PodID{Key: model.Key{Namespace: "default", Name: "a"}, UID: "uid-a"})
	}
}

// FuzzParsePod: a message is a pod or an error.
func FuzzParsePod(f *testing.F) {
	f.Add(message(f, "a"))
	f.Add(message(f, "a", notReady, deleted, phase("Failed")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, _, err := parsePod(b); err != nil && p != (model.PodID{}) || err == nil && (p.Name == "" || p.Namespace == "" || p.UID == "" || len(p.Name) > maxName) {
			t.Errorf("%+v, %v", p, err)
		}
	})
}
