package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// portTable is the nftables table with host ports. The process that wrote it owns it, so that it stays when something else
// flushes the ruleset of the node. That process is nft, which reads commands until the runtime ends. The kernel removes the table with it.
type portTable struct {
	// mu serialises the changes, from the list of the pods' ports until they are written.
	mu sync.Mutex
	// nft is nil before the first table is written.
	nft      *exec.Cmd
	commands io.WriteCloser
	messages *bufio.Scanner
	// written counts the tables.
	written int
}

// attempts is how often a table is written if other changes of the ruleset interrupt it.
const attempts = 10

// write replaces the table. dir gets the file that nft reads. The caller holds mu.
func (t *portTable) write(s *starter, dir, rules string) error {
	file := filepath.Join(dir, "hostports.nft")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		return err
	}
	var err error
	for range attempts {
		if t.nft == nil {
			if err := t.start(s, dir); err != nil {
				return fmt.Errorf("start nft: %w", err)
			}
		}
		if err = t.include(file); err == nil || !strings.Contains(err.Error(), syscall.EINTR.Error()) {
			break
		}
	}
	return err
}

// start runs nft, whose history goes to dir.
func (t *portTable) start(s *starter, dir string) error {
	cmd := exec.Command("nft", "-i")
	cmd.Env = []string{"HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	commands, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	messages, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.do(cmd.Start); err != nil {
		return err
	}
	t.nft, t.commands, t.messages = cmd, commands, bufio.NewScanner(messages)
	return nil
}

// missing is a directory that does not exist.
const missing = "/nonexistent/"

// include makes nft read a file, and returns what nft complains about. nft does not report success. Therefore it is
// asked for another file, which does not exist, and whose message comes after those about the first.
func (t *portTable) include(file string) error {
	t.written++
	last := fmt.Sprintf("%s%d.nft", missing, t.written)
	if _, err := fmt.Fprintf(t.commands, "include \"%s\"\ninclude \"%s\"\n", file, last); err != nil {
		return errors.Join(err, t.close())
	}
	var complaint []string
	for t.messages.Scan() {
		switch line := t.messages.Text(); {
		case strings.Contains(line, last):
			if len(complaint) > 0 {
				return errors.New(strings.Join(complaint, "\n"))
			}
			return nil
		case strings.Contains(line, missing) || strings.Trim(line, " ^~") == "":
			// The rest of the message before, or marks below a command.
		default:
			complaint = append(complaint, line)
		}
	}
	return errors.Join(errors.New("nft ended: "+strings.Join(complaint, "\n")), t.messages.Err(), t.close())
}

// close ends nft, if it runs.
func (t *portTable) close() error {
	if t.nft == nil {
		return nil
	}
	cmd := t.nft
	t.nft = nil
	return errors.Join(t.commands.Close(), cmd.Wait())
}
