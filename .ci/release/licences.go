package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are SPDX identifiers of licences.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// leastCoverage is how much of a file must be the text of licences, in percent.
const leastCoverage = 75

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-].*)?$`)

// module is a module of the program, as "go list" prints it.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// modules returns the modules in weft's binary, without the repository's.
func modules(repository string) ([]module, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/weft")
	cmd.Dir, cmd.Stderr = repository, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	found := make(map[string]module)
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list modules: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue // the standard library, or weft
		}
		m := *p.Module
		if m.Replace != nil {
			m = *m.Replace
		}
		found[m.Path] = m
	}
	return slices.SortedFunc(maps.Values(found), func(a, b module) int { return strings.Compare(a.Path, b.Path) }), nil
}

// licence returns the SPDX expression of a module's licence files. A licence outside of allowed is an error.
func licence(m module) (string, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return "", fmt.Errorf("licence of %s: %w", m.Path, err)
	}
	ids := make(map[string]bool)
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return "", fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		c := licensecheck.Scan(text)
		if c.Percent < leastCoverage {
			return "", fmt.Errorf("licence of %s: %s is not known: only %.0f %% of it are", m.Path, e.Name(), c.Percent)
		}
		for _, match := range c.Match {
			id := strings.TrimSuffix(match.ID, "-Header")
			if !slices.Contains(allowed, id) {
				return "", fmt.Errorf("licence of %s: %s is %s, which is not one of %s", m.Path, e.Name(), id, strings.Join(allowed, ", "))
			}
			ids[id] = true
		}
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("licence of %s: there is no file LICENSE or COPYING in %s", m.Path, m.Dir)
	}
	return strings.Join(slices.Sorted(maps.Keys(ids)), " AND "), nil
}

// licences returns the licences of all modules of the program, by their paths.
func licences(repository string) (map[string]string, error) {
	all, err := modules(repository)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(all))
	var errs []error
	for _, m := range all {
		id, err := licence(m)
		out[m.Path], errs = id, append(errs, err)
	}
	return out, errors.Join(errs...)
}

// printLicences prints the number of modules by licence.
func printLicences(w io.Writer, repository string) error {
	all, err := licences(repository)
	if err != nil {
		return err
	}
	count := make(map[string]int)
	for _, id := range all {
		count[id]++
	}
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(count)) {
		texts = append(texts, fmt.Sprintf("%d %s", count[id], id))
	}
	_, err = fmt.Fprintf(w, "licences: ok (%d modules: %s)\n", len(all), strings.Join(texts, ", "))
	return err
}
