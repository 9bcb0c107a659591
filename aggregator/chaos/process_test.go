package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// roleEnv and configEnv make this test binary one of the processes.
const (
	roleEnv       = "WEFT_CHAOS_ROLE"
	configEnv     = "WEFT_CHAOS_CONFIG"
	roleDaemon    = "aggregator"
	rolePublisher = "publisher"
)

// runRole runs the process that the environment asks for.
func runRole(role string) error {
	config := []byte(os.Getenv(configEnv))
	switch role {
	case roleDaemon:
		var cfg daemonConfig
		if err := json.Unmarshal(config, &cfg); err != nil {
			return err
		}
		return runDaemon(cfg, os.Stdin, os.Stdout)
	case rolePublisher:
		var cfg publisherConfig
		if err := json.Unmarshal(config, &cfg); err != nil {
			return err
		}
		return runPublisher(cfg, os.Stdin, os.Stdout)
	default:
		return fmt.Errorf("unknown role %q", role)
	}
}

// process is a child process of the conductor.
type process struct {
	cmd *exec.Cmd
	in  *lines
	// stdin is closed to end the process; it ends with the conductor too.
	stdin io.Closer
}

// event is a reply with the process that it comes from.
type event struct {
	from *process
	reply
}

// start runs a role in a namespace. Its replies, and at last replyEnded, go to
// events; its standard error is appended to a file.
func start(ns *nfttest.NS, role string, config any, log *os.File, events chan<- event) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role, configEnv+"="+string(text))
	p.cmd.Stderr = log
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.stdin = &lines{w: stdin}, stdin
	if err := ns.Do(p.cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	go func() {
		readLines(stdout, func(line []byte) {
			r := reply{}
			if err := json.Unmarshal(line, &r); err != nil {
				r = reply{Kind: replyUnknown, Error: fmt.Sprintf("bad line %.80q: %v", line, err)}
			}
			events <- event{p, r}
		})
		// All it wrote is read: reap it.
		events <- event{p, reply{Kind: replyEnded, Error: fmt.Sprint(p.cmd.Wait())}}
	}()
	return p, nil
}

// signal sends a signal; a process that has ended ignores it.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }
