// Command mutate measures tests: it changes the source of packages in one place at a time, and counts the
// changes that make a test fail.
//
//	mutate [-n 60] [-seed 1] [-j 2] [-timeout 2m] [-tests PATTERN] DIRECTORY...
//
// Each DIRECTORY is a package. A mutant has one operator replaced, one condition negated, one boolean result
// inverted, or one statement removed. The seed chooses n of all mutants. -tests names the packages with the
// tests, by default the package itself. The tree stays as it is: go test reads the mutants with -overlay. A
// mutant that does not compile does not count. Surviving mutants are listed.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// mutant is a file with one change.
type mutant struct {
	file       string
	line       int
	start, end int
	text       string
	what       string
}

// result is the outcome of the tests of a mutant.
type result int

const (
	stillborn result = iota
	killed
	survived
)

func main() {
	n := flag.Int("n", 60, "mutants of each package")
	seed := flag.Uint64("seed", 1, "chooses the mutants")
	workers := flag.Int("j", 2, "mutants tested at a time")
	timeout := flag.Duration("timeout", 2*time.Minute, "of the tests of one mutant; a mutant that takes longer is killed")
	tests := flag.String("tests", "", "packages whose tests run, separated by spaces; empty for the package alone")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	for _, dir := range flag.Args() {
		if err := measure(dir, strings.Fields(*tests), *n, *seed, *workers, *timeout); err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
	}
}

// measure tests mutants of a package and prints the result.
func measure(dir string, tests []string, n int, seed uint64, workers int, timeout time.Duration) error {
	if len(tests) == 0 {
		tests = []string{"./" + filepath.Clean(dir)}
	}
	all, err := mutants(dir)
	if err != nil {
		return err
	}
	total := len(all)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(total, func(i, j int) { all[i], all[j] = all[j], all[i] })
	if out, err := run(mutant{}, tests, 10*timeout); err != nil {
		return fmt.Errorf("%s: the tests fail without a mutant: %w\n%s", dir, err, out)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	count, next := map[result]int{}, 0
	var alive []string
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == total || count[killed]+count[survived] >= n {
					mu.Unlock()
					return
				}
				m := all[next]
				next++
				mu.Unlock()
				r := test(m, tests, timeout)
				mu.Lock()
				count[r]++
				if r == survived {
					alive = append(alive, fmt.Sprintf("%s:%d: %s", m.file, m.line, m.what))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(alive)
	for _, line := range alive {
		fmt.Println("survived", line)
	}
	tested := count[killed] + count[survived]
	fmt.Printf("%s: %d of %d mutants killed (%.0f %%), of %d possible; %d did not compile\n", dir, count[killed], tested, 100*float64(count[killed])/float64(max(tested, 1)), total, count[stillborn])
	return nil
}

// test runs the tests on a mutant.
func test(m mutant, tests []string, timeout time.Duration) result {
	out, err := run(m, tests, timeout)
	switch {
	case err == nil:
		return survived
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return stillborn
	default:
		return killed
	}
}

// run runs tests with a mutant in place of a file; without a file they run on the tree.
func run(m mutant, tests []string, timeout time.Duration) ([]byte, error) {
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout=" + timeout.String()}
	if m.file != "" {
		dir, err := os.MkdirTemp("", "mutate")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		source, err := os.ReadFile(m.file)
		if err != nil {
			return nil, err
		}
		mutated := filepath.Join(dir, filepath.Base(m.file))
		text := string(source[:m.start]) + m.text + string(source[m.end:])
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: mutated}})
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "overlay.json")
		if err := errors.Join(os.WriteFile(mutated, []byte(text), 0o600), os.WriteFile(file, overlay, 0o600)); err != nil {
			return nil, err
		}
		args = append(args, "-overlay="+file)
	}
	return exec.Command("go", append(args, tests...)...).CombinedOutput() //nolint:gosec // the packages are the caller's
}

// mutants returns all mutants of a package, in the order of the source.
func mutants(dir string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, 0)
		if err != nil {
			return nil, err
		}
		add := func(from, to token.Pos, text string) {
			start, end := set.Position(from), set.Position(to)
			old := strings.Join(strings.Fields(string(source[start.Offset:end.Offset])), " ")
			all = append(all, mutant{file: path, line: start.Line, start: start.Offset, end: end.Offset, text: text, what: fmt.Sprintf("%.60q became %.60q", old, text)})
		}
		ast.Inspect(file, func(node ast.Node) bool {
			mutate(node, func(n ast.Node) string {
				return string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])
			}, add)
			return true
		})
	}
	return all, nil
}

// operators are the replacements of binary operators.
var operators = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==", token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+",
}

// mutate adds the mutants of a node.
func mutate(node ast.Node, text func(ast.Node) string, add func(from, to token.Pos, text string)) {
	switch node := node.(type) {
	case *ast.BinaryExpr:
		if other, ok := operators[node.Op]; ok {
			add(node.OpPos, node.OpPos+token.Pos(len(node.Op.String())), other)
		}
	case *ast.IfStmt:
		add(node.Cond.Pos(), node.Cond.End(), "!("+text(node.Cond)+")")
	case *ast.ReturnStmt:
		for _, r := range node.Results {
			if id, ok := r.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
				add(id.Pos(), id.End(), map[string]string{"true": "false", "false": "true"}[id.Name])
			}
		}
	case *ast.BlockStmt:
		for _, s := range node.List {
			switch s := s.(type) {
			case *ast.ExprStmt, *ast.IncDecStmt:
				add(s.Pos(), s.End(), "")
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE {
					add(s.Pos(), s.End(), "")
				}
			}
		}
	}
}
