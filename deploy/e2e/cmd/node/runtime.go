package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-proxy/weft/deploy/e2e/node"
	"github.com/weft-proxy/weft/deploy/e2e/node/runtime"
)

// The programs of images are beside this program.
func newRuntime(cfg node.Config) (*runtime.Runtime, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find programs of images: %w", err)
	}
	return runtime.New(runtime.Config{Dir: filepath.Join(cfg.Root, "runtime"), Programs: filepath.Dir(program)})
}
