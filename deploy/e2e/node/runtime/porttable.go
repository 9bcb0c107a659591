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

// A running nft process owns the table, so that it survives a flush of the ruleset. The kernel removes
// the table with the process.
type portTable struct {
	// mu serialises changes, from the list of the pods' ports to the write.
	mu sync.Mutex
	// nft is nil before the first write.
	nft      *exec.Cmd
	commands io.WriteCloser
	messages *bufio.Scanner
	written  int
}

// attempts bounds the writes that other changes of the ruleset interrupt.
const attempts = 10

// write replaces the table. dir gets the file for nft. The caller holds mu.
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

const missing = "/nonexistent/"

// nft does not report success. Therefore include then makes nft read a missing file, and the error for
// that file marks the end.
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
		default:
			complaint = append(complaint, line)
		}
	}
	return errors.Join(errors.New("nft ended: "+strings.Join(complaint, "\n")), t.messages.Err(), t.close())
}

func (t *portTable) close() error {
	if t.nft == nil {
		return nil
	}
	cmd := t.nft
	t.nft = nil
	return errors.Join(t.commands.Close(), cmd.Wait())
}
