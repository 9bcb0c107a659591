package pods

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// protocol is for streams through the API server: kubectl tries the first, then the second.
type protocol string

const (
	websocket protocol = "websocket"
	spdy      protocol = "spdy"
)

func (e *env) url(pod, subresource string, options runtime.Object) *url.URL {
	return e.client.CoreV1().RESTClient().Get().Resource("pods").Namespace(e.namespace).Name(pod).SubResource(subresource).
		VersionedParams(options, scheme.ParameterCodec).URL()
}

// stream returns when the other side ends it.
func (e *env) stream(ctx context.Context, p protocol, u *url.URL, streams remotecommand.StreamOptions) error {
	var executor remotecommand.Executor
	var err error
	switch p {
	case websocket:
		executor, err = remotecommand.NewWebSocketExecutor(e.cluster.Admin(), "GET", u.String())
	case spdy:
		executor, err = remotecommand.NewSPDYExecutor(e.cluster.Admin(), "POST", u)
	default:
		err = fmt.Errorf("unknown protocol %q", p)
	}
	if err != nil {
		return fmt.Errorf("make stream: %w", err)
	}
	return executor.StreamWithContext(ctx, streams)
}

// The Pod has one container.
func (e *env) exec(ctx context.Context, p protocol, pod, stdin string, command ...string) (stdout, stderr string, err error) {
	options := &corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}
	var out, errout bytes.Buffer
	streams := remotecommand.StreamOptions{Stdout: &out, Stderr: &errout}
	if stdin != "" {
		options.Stdin = true
		streams.Stdin = strings.NewReader(stdin)
	}
	err = e.stream(ctx, p, e.url(pod, "exec", options), streams)
	return out.String(), errout.String(), err
}

// The Pod has one container. shell trims spaces of the output.
func (e *env) shell(t *testing.T, pod, script string) string {
	t.Helper()
	out, errout, err := e.exec(t.Context(), websocket, pod, "", "sh", "-c", script)
	if err != nil {
		t.Fatalf("run %q in pod %s: %v: %s", script, pod, err, errout)
	}
	return strings.TrimSpace(out)
}

func (e *env) logs(t *testing.T, pod, container string) string {
	t.Helper()
	// A running container may not have written yet.
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		b, err := e.client.CoreV1().Pods(e.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(t.Context())
		if err != nil {
			t.Fatalf("read log of container %s of pod %s: %v", container, pod, err)
		}
		if len(b) > 0 || time.Now().After(deadline) {
			return string(b)
		}
	}
}
