package runtime

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) Close() error { return nil }

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A client with a keyboard does not end its input.
func TestCommandEndsBeforeItsInput(t *testing.T) {
	r, c := serve(t)
	// The input must not delay the end until after the deadline.
	r.lingering = 2 * patience
	id := c.start(t, c.pod(t, &cri.PodSandboxConfig{Hostname: "web"}), "exec sleep 1000")
	in, keyboard := io.Pipe()
	defer keyboard.Close()
	go func() { _, _ = keyboard.Write([]byte("one\n")) }() // the command reads it
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out output
	if err := (*streamer)(r).Exec(ctx, id, []string{"head", "-n1"}, in, &out, &output{}, false, nil); err != nil || out.String() != "one\n" {
		t.Errorf("Exec = %v, %q; want the line", err, out.String())
	}
}

func TestTerminalOfContainer(t *testing.T) {
	r, c := serve(t)
	const script = `test -t 0 && test -t 1 && test -t 2 || exit 1
read line
printf 'prompt '
while [ "$(stty size)" != "40 100" ]; do sleep 0.05; done
read line </dev/tty
echo "got $line"
exit 3`
	id := c.configure(t, c.pod(t, &cri.PodSandboxConfig{Hostname: "web"}), script, func(config *cri.ContainerConfig) {
		config.Tty, config.Stdin, config.StdinOnce = true, true, true
		config.Linux = &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{RunAsUser: &cri.Int64Value{Value: 1000}}}
	})
	c.begin(t, id)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	in, keyboard := io.Pipe()
	sizes := make(chan remotecommand.TerminalSize)
	var out output
	ended := make(chan error, 1)
	go func() { ended <- (*streamer)(r).Attach(ctx, id, in, &out, nil, true, sizes) }()
	if _, err := io.WriteString(keyboard, "one\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a part of a line comes", func() bool { return strings.HasSuffix(out.String(), "prompt ") })
	sizes <- remotecommand.TerminalSize{Width: 100, Height: 40}
	close(sizes)
	if _, err := io.WriteString(keyboard, "two\n"); err != nil {
		t.Fatal(err)
	}
	keyboard.Close()
	if err := <-ended; err != nil {
		t.Errorf("Attach = %v", err)
	}
	// The terminal echoes the input.
	if got, want := out.String(), "two\r\ngot two\r\n"; !strings.HasSuffix(got, want) {
		t.Errorf("the terminal shows %q, want %q at the end", got, want)
	}
	if s := c.status(t, id); s.GetExitCode() != 3 {
		t.Errorf("status = %v, want exit code 3", s)
	}
}
