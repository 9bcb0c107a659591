package vm

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// archive writes a cpio archive in the format "newc", which the kernel unpacks as its root. close
// returns the first error.
type archive struct {
	w    *bufio.Writer
	n    int
	ino  int
	dirs map[string]bool
	err  error
}

func newArchive(w io.Writer) *archive {
	return &archive{w: bufio.NewWriter(w), dirs: map[string]bool{".": true, "/": true}}
}

func (a *archive) dir(name string) {
	if a.dirs[name] {
		return
	}
	a.dir(path.Dir(name))
	a.dirs[name] = true
	a.entry(name, 0o040755, 0, strings.NewReader(""))
}

// The file is executable.
func (a *archive) text(name, content string) {
	a.dir(path.Dir(name))
	a.entry(name, 0o100755, int64(len(content)), strings.NewReader(content))
}

func (a *archive) link(name, target string) {
	a.dir(path.Dir(name))
	a.entry(name, 0o120777, int64(len(target)), strings.NewReader(target))
}

// file copies a file or directory of the host, and follows links.
func (a *archive) file(name, host string) {
	f, err := os.Open(host)
	if err != nil {
		a.fail(err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		a.fail(err)
		return
	}
	if info.IsDir() {
		a.tree(name, host)
		return
	}
	a.dir(path.Dir(name))
	a.entry(name, 0o100000|uint32(info.Mode().Perm()), info.Size(), f)
}

func (a *archive) tree(name, host string) {
	err := fs.WalkDir(os.DirFS(host), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			a.dir(path.Join(name, p))
			return err
		}
		a.file(path.Join(name, p), path.Join(host, p))
		return a.err
	})
	a.fail(err)
}

func (a *archive) entry(name string, mode uint32, size int64, content io.Reader) {
	a.ino++
	name = strings.TrimPrefix(name, "/")
	a.print("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		a.ino, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	a.pad()
	n, err := io.CopyN(a.w, content, size)
	a.fail(err)
	a.n += int(n)
	a.pad()
}

func (a *archive) print(format string, args ...any) {
	n, err := fmt.Fprintf(a.w, format, args...)
	a.n += n
	a.fail(err)
}

// pad appends zeros up to a multiple of four bytes.
func (a *archive) pad() {
	for a.n%4 != 0 {
		a.n++
		a.fail(a.w.WriteByte(0))
	}
}

func (a *archive) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, 0, strings.NewReader(""))
	a.fail(a.w.Flush())
	return a.err
}
