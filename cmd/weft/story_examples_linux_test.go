package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// copyExample is the script command "example NAME": it copies
// deploy/examples/NAME to the directory NAME.
func copyExample(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: example NAME")
	}
	from := filepath.Join("..", "..", "deploy", "examples", args[0])
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), os.DirFS(from)))
}

// needTool is the script command "need TOOL": where the environment says CI=true
// the story fails without the tool. Elsewhere it goes on, to skip itself.
func needTool(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: need TOOL")
	}
	if _, err := exec.LookPath(args[0]); err == nil {
		return
	}
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		ts.Fatalf("require in CI: missing %s: install it", args[0])
	}
}
