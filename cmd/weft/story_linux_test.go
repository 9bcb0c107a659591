package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestMain lets the test binary be weft, for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weft": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestStories runs the scripts in testdata: what a user types and sees. Those
// in testdata/netns run as root of a network namespace of their own.
func TestStories(t *testing.T) {
	testscript.Run(t, params("testdata"))
}

// params returns the parameters of the scripts in dir.
func params(dir string) testscript.Params {
	return testscript.Params{Dir: dir, Cmds: commands, RequireExplicitExec: true, Setup: func(e *testscript.Env) error {
		// By default the race detector waits for a second before a process ends.
		e.Setenv("GORACE", "atexit_sleep_ms=10")
		return nil
	}}
}

// inNamespace says that this process was started in a fresh network namespace.
const inNamespace = "WEFT_TEST_IN_NAMESPACE"

// TestDaemonStories runs each script in testdata/netns in a process of its own,
// in a fresh network namespace.
func TestDaemonStories(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		testscript.Run(t, params("testdata/netns"))
		return
	}
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	scripts, err := filepath.Glob("testdata/netns/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in testdata/netns: %v", err)
	}
	for _, path := range scripts {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			if name == "access" {
				nfttest.Require(t, nfttest.Users)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDaemonStories$/^"+name+"$", "-test.v", "-test.count=1")
			cmd.Env = append(os.Environ(), inNamespace+"=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatalf("script %s: %v", name, err)
			}
			if strings.Contains(string(out), "--- SKIP: TestDaemonStories/"+name) {
				t.Skip("the script says why")
			}
			if !strings.Contains(string(out), "--- PASS: TestDaemonStories/"+name) {
				t.Fatalf("script %s did not run", name)
			}
		})
	}
}

// commands are what the scripts have beside testscript's own.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// await PATTERN COMMAND...: run a command until its output has the
	// pattern; with "!", until it has not.
	"example":  copyExample,
	"examples": runExamples,
	"need":     needTool,
	"await": func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) < 2 {
			ts.Fatalf("usage: await PATTERN COMMAND...")
		}
		var out []byte
		for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
			cmd := command(ts, args[1:])
			// A command that fails has its say in the output.
			out, _ = cmd.CombinedOutput()
			if bytes.Contains(out, []byte(args[0])) != neg {
				fmt.Fprintf(ts.Stdout(), "%s", out)
				return
			}
		}
		ts.Fatalf("%q did not come in 10 s; last output:\n%s", args[0], out)
	},
	// as UID:GROUP weft ARGUMENTS: run weft as another user.
	"as": func(ts *testscript.TestScript, neg bool, args []string) {
		cmd := command(ts, append([]string{"as"}, args...))
		cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
		switch err := cmd.Run(); {
		case err != nil && !neg:
			ts.Fatalf("as %s: %v", strings.Join(args, " "), err)
		case err == nil && neg:
			ts.Fatalf("as %s succeeded", strings.Join(args, " "))
		}
	},
}

// command makes a command of a script, which may be that of another user: "as
// UID:GROUP weft ARGUMENTS".
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	if args[0] != "as" {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = ts.Getenv("WORK"), environ(ts)
		return cmd
	}
	var cred syscall.Credential
	if len(args) < 3 || args[2] != "weft" {
		ts.Fatalf("usage: as UID:GROUP weft ARGUMENTS")
	} else if _, err := fmt.Sscanf(args[1], "%d:%d", &cred.Uid, &cred.Gid); err != nil {
		ts.Fatalf("as %s: %v", args[1], err)
	}
	// weft is this binary, by a link that leads past directories which only
	// root may enter.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = args[2:]
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), environ(ts)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &cred}
	return cmd
}

func environ(ts *testscript.TestScript) []string {
	env := os.Environ()
	for _, name := range []string{"PATH", "HOME", "WORK", "GORACE"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}
