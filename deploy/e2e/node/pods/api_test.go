package pods

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// execute runs commands as kubectl exec does: with input, with a terminal, and a failing one.
func execute(t *testing.T, e *env) {
	p := e.run(t, e.newPod("pod", 0, shell("main", "sleep 1000")))
	for _, over := range []protocol{websocket, spdy} {
		out, errout, err := e.exec(t.Context(), over, p.Name, "some input", "sh", "-c", "cat; echo warning >&2")
		if err != nil || out != "some input" || errout != "warning\n" {
			t.Errorf("exec over %s = %q, %q, %v; want the input, a warning and no error", over, out, errout, err)
		}
		_, _, err = e.exec(t.Context(), over, p.Name, "", "sh", "-c", "exit 7")
		if exit := new(exec.CodeExitError); !errors.As(err, exit) || exit.Code != 7 {
			t.Errorf("exec of exit 7 over %s = %v, want exit code 7", over, err)
		}
	}
	var out bytes.Buffer
	options := &corev1.PodExecOptions{Command: []string{"sh", "-c", "test -t 0 && test -t 1 && echo terminal"}, Stdout: true, TTY: true}
	if err := e.stream(t.Context(), websocket, e.url(p.Name, "exec", options), remotecommand.StreamOptions{Stdout: &out, Tty: true}); err != nil {
		t.Errorf("exec with a terminal: %v", err)
	}
	if got := out.String(); got != "terminal\r\n" {
		t.Errorf("exec with a terminal wrote %q, want %q", got, "terminal\r\n")
	}
}

// attach writes to the first process of a container, and reads its answer.
func attach(t *testing.T, e *env) {
	c := shell("main", "while read line; do echo got $line; [ $line = end ] && exit 0; done")
	c.Stdin = true
	p := e.run(t, e.newPod("pod", 1, c))
	var out bytes.Buffer
	options := &corev1.PodAttachOptions{Stdin: true, Stdout: true, Stderr: true}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	streams := remotecommand.StreamOptions{Stdin: strings.NewReader("one\nend\n"), Stdout: &out, Stderr: io.Discard}
	if err := e.stream(ctx, websocket, e.url(p.Name, "attach", options), streams); err != nil {
		t.Errorf("attach: %v", err)
	}
	if got := out.String(); got != "got one\ngot end\n" {
		t.Errorf("attach read %q, want %q", got, "got one\ngot end\n")
	}
	e.await(t, p.Name, "succeeded", isPhase(corev1.PodSucceeded))
}

// attachTerminal types at the terminal of a container, whose first process asks for a line.
func attachTerminal(t *testing.T, e *env) {
	c := shell("main", "test -t 0 && test -t 1 || exit 1; read line </dev/tty; echo got $line")
	c.Stdin, c.TTY = true, true
	p := e.run(t, e.newPod("pod", 0, c))
	var out bytes.Buffer
	options := &corev1.PodAttachOptions{Stdin: true, Stdout: true, TTY: true}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	streams := remotecommand.StreamOptions{Stdin: strings.NewReader("one\n"), Stdout: &out, Tty: true}
	if err := e.stream(ctx, websocket, e.url(p.Name, "attach", options), streams); err != nil {
		t.Errorf("attach: %v", err)
	}
	if got, want := out.String(), "one\r\ngot one\r\n"; got != want { // the terminal echoes the input
		t.Errorf("attach read %q, want %q", got, want)
	}
	e.await(t, p.Name, "succeeded", isPhase(corev1.PodSucceeded))
}

// followLogs reads a log during writes, and its end.
func followLogs(t *testing.T, e *env) {
	p := e.run(t, e.newPod("pod", 0, shell("main", "echo first; while ! test -f /go; do sleep 0.1; done; echo last")))
	log, err := e.client.CoreV1().Pods(e.namespace).GetLogs(p.Name, &corev1.PodLogOptions{Follow: true, Timestamps: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	var got []string
	for lines.Scan() {
		stamp, text, _ := strings.Cut(lines.Text(), " ")
		if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
			t.Errorf("time stamp of a line: %v", err)
		}
		if got = append(got, text); text == "first" {
			e.shell(t, p.Name, "touch /go")
		}
	}
	if err := lines.Err(); err != nil || strings.Join(got, ",") != "first,last" {
		t.Errorf("log has lines %v, then %v; want first and last", got, err)
	}
	if tail := e.tail(t, p.Name, 1); tail != "last\n" {
		t.Errorf("last line of the log is %q", tail)
	}
}

func (e *env) tail(t *testing.T, pod string, lines int64) string {
	t.Helper()
	b, err := e.client.CoreV1().Pods(e.namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// forwardPort reaches a server as kubectl port-forward does.
func forwardPort(t *testing.T, e *env) {
	p := e.run(t, e.newPod("pod", 1, netexec(8080)))
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(e.url(p.Name, "portforward", &corev1.PodPortForwardOptions{}), e.cluster.Admin())
	if err != nil {
		t.Fatal(err)
	}
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewForStreaming(dialer, []string{"0:8080"}, stop, ready, io.Discard, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("forward port: %v", err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := get(t, fmt.Sprintf("http://127.0.0.1:%d/hostname", ports[0].Local)); got != p.Name {
			t.Errorf("GET through the forwarded port = %q, want %q", got, p.Name)
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Errorf("end of forwarding: %v", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 3 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// proxies asks a pod and a kubelet through the API server.
func proxies(t *testing.T, e *env) {
	p := e.run(t, e.newPod("pod", 0, netexec(8080)))
	core := e.client.CoreV1().RESTClient()
	b, err := core.Get().Namespace(e.namespace).Resource("pods").Name(p.Name + ":8080").SubResource("proxy").Suffix("hostname").DoRaw(t.Context())
	if err != nil || string(b) != p.Name {
		t.Errorf("GET pods/%s:8080/proxy/hostname = %q, %v", p.Name, b, err)
	}
	for path, want := range map[string]string{"healthz": "ok", "pods": p.Name, "logs/": "containers/", "metrics": "kubelet_running_pods"} {
		b, err := core.Get().Resource("nodes").Name(p.Spec.NodeName).SubResource("proxy").Suffix(path).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("GET nodes/%s/proxy/%s has no %q: %.200q, %v", p.Spec.NodeName, path, want, b, err)
		}
	}
}
