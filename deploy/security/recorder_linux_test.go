package security

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// record is weft's system calls, as strace saw them.
type record struct {
	// the first line of strace by system call
	calls map[string]string
	// of sockets
	families map[string]bool
	// AppArmor's letters of used permissions by path
	files map[string]string
	// lines of calls that failed with refusal
	refused []string
}

// refusal replaces EPERM as a filter's error, because the kernel also returns EPERM for other reasons.
// The kernel's own ENOMEDIUM is about drives.
const (
	refusal      = 123
	refusalPrint = "ENOMEDIUM"
)

func newRecord() *record {
	return &record{calls: map[string]string{}, families: map[string]bool{}, files: map[string]string{}}
}

var (
	execLine   = regexp.MustCompile(`^execve\("/weft", .* = 0$`)
	nameLine   = regexp.MustCompile(`^[a-z0-9_]+$`)
	callLine   = regexp.MustCompile(`^([a-z0-9_]+)\((.*)\)\s+= (.*)$`)
	childLine  = regexp.MustCompile(`^clone3?\(.* = (\d+)(?:<[^>]*>)?(?: /\* (\d+) in strace's PID NS \*/)?$`)
	pathArg    = regexp.MustCompile(`^(?:AT_FDCWD<[^>]*>, |-1, |\d+<([^>]*)>, )?"([^"]*)"(.*)$`)
	openedPath = regexp.MustCompile(`^\d+<(/[^>]*)>`)
	unixPath   = regexp.MustCompile(`sun_path="([^"]*)"`)
	openFlags  = regexp.MustCompile(`O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)`)
)

// add reads the files of one run of strace -ff, only of weft's threads from its start on, without the
// container runtime.
func (r *record) add(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "t.*"))
	if err != nil {
		return err
	}
	threads := map[string][]string{}
	var weft []string
	for _, path := range files {
		lines, err := readLines(path)
		if err != nil {
			return err
		}
		id := strings.TrimPrefix(filepath.Ext(path), ".")
		threads[id] = lines
		for i, line := range lines {
			if execLine.MatchString(line) {
				threads[id] = lines[i+1:]
				weft = append(weft, id)
			}
		}
	}
	if len(weft) != 1 {
		return fmt.Errorf("%s: weft was started %d times", dir, len(weft))
	}
	for len(weft) > 0 {
		id := weft[0]
		weft = weft[1:]
		for _, line := range threads[id] {
			if m := childLine.FindStringSubmatch(line); m != nil {
				child := m[1]
				if m[2] != "" {
					child = m[2]
				}
				weft = append(weft, child)
			}
			r.line(line)
		}
		delete(threads, id)
	}
	return nil
}

func readLines(path string) (out []string, err error) {
	f, err := os.Open(path) //nolint:gosec // strace's
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out, s.Err()
}

func (r *record) line(line string) {
	var name, args, result string
	if m := callLine.FindStringSubmatch(line); m != nil {
		name, args, result = m[1], m[2], m[3]
	} else if n, _, ok := strings.Cut(line, "("); ok && nameLine.MatchString(n) && !strings.HasPrefix(n, "syscall_0x") {
		name = n // the thread ended in it; without a name, strace read the registers while it detached
	} else {
		return
	}
	if _, ok := r.calls[name]; !ok {
		r.calls[name] = line
	}
	if strings.Contains(result, refusalPrint) {
		r.refused = append(r.refused, line)
	}
	if name == "socket" {
		family, _, _ := strings.Cut(args, ",")
		r.families[family] = true
	}
	r.file(name, args, result)
}

// file adds a call's use of a path. AppArmor does not check stat and readlink.
func (r *record) file(name, args, result string) {
	if strings.HasPrefix(result, "-1 ENOENT") && name != "openat" {
		return
	}
	switch name {
	case "openat":
		m := pathArg.FindStringSubmatch(args)
		if m == nil || strings.Contains(m[3], "O_PATH") {
			return
		}
		path := absolute(m[1], m[2])
		if opened := openedPath.FindStringSubmatch(result); opened != nil {
			path = opened[1] // without symbolic links
		} else if !strings.Contains(m[3], "O_CREAT") {
			return // no such file, or refused by another check than AppArmor
		}
		perm := "r"
		switch {
		case strings.Contains(m[3], "O_RDWR"):
			perm = "rw"
		case openFlags.MatchString(m[3]):
			perm = "w"
		}
		r.touch(path, perm)
	case "mkdirat", "unlinkat", "fchmodat", "fchmodat2", "fchownat", "utimensat", "mknodat":
		if m := pathArg.FindStringSubmatch(args); m != nil {
			r.touch(absolute(m[1], m[2]), "w")
		}
	case "renameat", "renameat2", "linkat":
		for _, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(args, -1) {
			r.touch(m[1], "rw")
		}
	case "connect":
		if m := unixPath.FindStringSubmatch(args); m != nil {
			r.touch(m[1], "rw")
		}
	case "bind":
		if m := unixPath.FindStringSubmatch(args); m != nil {
			r.touch(m[1], "w")
		}
	case "inotify_add_watch":
		if m := pathArg.FindStringSubmatch(args); m != nil {
			r.touch(absolute("", m[2]), "r")
		}
	case "flock", "fchmod", "fchown", "ftruncate":
		if _, rest, ok := strings.Cut(args, "<"); ok {
			path, _, _ := strings.Cut(rest, ">")
			if !strings.HasPrefix(path, "/") {
				return // a socket
			}
			perm := "w"
			if name == "flock" {
				perm = "k"
			}
			r.touch(path, perm)
		}
	}
}

func absolute(dir, path string) string {
	if strings.HasPrefix(path, "/") || dir == "" {
		return path
	}
	return filepath.Join(dir, path)
}

func (r *record) touch(path, perm string) {
	for _, letter := range perm {
		if !strings.ContainsRune(r.files[path], letter) {
			r.files[path] += string(letter)
		}
	}
}
