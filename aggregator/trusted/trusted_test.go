package trusted_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/aggregator/trusted"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// must ends the test on an error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestMakeDir(t *testing.T) {
	for _, tt := range []struct {
		name string
		// prepare makes what is there, and returns the path of the directory.
		prepare func(root string) (string, error)
		want    error
		created bool
	}{
		{"there", func(root string) (string, error) { return root, nil }, nil, false},
		{"missing", func(root string) (string, error) { return root + "/a/b", nil }, nil, true},
		{"writable by all", func(root string) (string, error) {
			return root + "/a", errors.Join(os.Mkdir(root+"/a", 0o700), os.Chmod(root+"/a", 0o777))
		}, trusted.ErrUnsafe, false},
		{"writable by its group", func(root string) (string, error) {
			return root + "/a", errors.Join(os.Mkdir(root+"/a", 0o700), os.Chmod(root+"/a", 0o770))
		}, trusted.ErrUnsafe, false},
		{"sticky", func(root string) (string, error) {
			return root + "/a", errors.Join(os.Mkdir(root+"/a", 0o700), os.Chmod(root+"/a", 0o777|os.ModeSticky))
		}, trusted.ErrUnsafe, false},
		{"below sticky", func(root string) (string, error) {
			return root + "/a/b", errors.Join(os.Mkdir(root+"/a", 0o700), os.Chmod(root+"/a", 0o777|os.ModeSticky))
		}, nil, true},
		{"below writable by all", func(root string) (string, error) {
			return root + "/a/b", errors.Join(os.MkdirAll(root+"/a/b", 0o700), os.Chmod(root+"/a", 0o777))
		}, trusted.ErrUnsafe, false},
		{"link", func(root string) (string, error) {
			return root + "/l", errors.Join(os.Mkdir(root+"/a", 0o700), os.Symlink("a", root+"/l"))
		}, trusted.ErrLink, false},
		{"dangling link", func(root string) (string, error) { return root + "/l", os.Symlink("nowhere", root+"/l") }, trusted.ErrLink, false},
		{"link on the way", func(root string) (string, error) {
			return root + "/l/b", errors.Join(os.Mkdir(root+"/a", 0o700), os.Symlink(root+"/a", root+"/l"))
		}, nil, true},
		{"link on the way to an unsafe one", func(root string) (string, error) {
			return root + "/l/b", errors.Join(os.Mkdir(root+"/a", 0o700), os.Chmod(root+"/a", 0o777), os.Symlink("../"+filepath.Base(root)+"/a", root+"/l"))
		}, trusted.ErrUnsafe, false},
		{"loop", func(root string) (string, error) { return root + "/l/b", os.Symlink("l", root+"/l") }, syscall.ELOOP, false},
		{"file", func(root string) (string, error) { return root + "/f", os.WriteFile(root+"/f", nil, 0o600) }, syscall.ENOTDIR, false},
		{"below a file", func(root string) (string, error) { return root + "/f/a", os.WriteFile(root+"/f", nil, 0o600) }, syscall.ENOTDIR, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			path, err := tt.prepare(root)
			must(t, err)
			created, err := trusted.MakeDir(path, 0o750)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil || created != tt.created {
				t.Fatalf("created %t, error %v: want %t, %v", created, err, tt.created, tt.want)
			}
			if st, serr := os.Stat(path); tt.created && (serr != nil || st.Mode() != fs.ModeDir|0o750) {
				t.Errorf("the directory is %v: %v", st, serr)
			}
		})
	}
}

// TestOtherOwners needs root, which can give files away.
func TestOtherOwners(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	root := t.TempDir()
	theirs, sticky := filepath.Join(root, "theirs"), filepath.Join(root, "sticky")
	must(t, os.Mkdir(theirs, 0o755), os.Mkdir(theirs+"/mine", 0o755), os.Chown(theirs, 4321, 4321))
	for _, path := range []string{theirs, theirs + "/mine", theirs + "/new"} {
		if _, err := trusted.MakeDir(path, 0o750); !errors.Is(err, trusted.ErrUnsafe) {
			t.Errorf("%s: %v, want %v", path, err, trusted.ErrUnsafe)
		}
	}
	// A link of another user beside /tmp's others.
	must(t, os.Mkdir(sticky, 0o755), os.Chmod(sticky, 0o777|os.ModeSticky), os.Symlink(root, sticky+"/l"), os.Lchown(sticky+"/l", 4321, 4321))
	if _, err := trusted.MakeDir(sticky+"/l/new", 0o750); !errors.Is(err, trusted.ErrUnsafe) {
		t.Errorf("through another user's link: %v, want %v", err, trusted.ErrUnsafe)
	}
	file := filepath.Join(root, "file")
	must(t, os.WriteFile(file, nil, 0o600), os.Chown(file, 4321, 4321))
	if _, err := trusted.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600); !errors.Is(err, trusted.ErrUnsafe) {
		t.Errorf("another user's file: %v, want %v", err, trusted.ErrUnsafe)
	}
}

func TestOpenFile(t *testing.T) {
	root := t.TempDir()
	f, err := trusted.OpenFile(root+"/new", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err, f.Close())
	must(t, os.Symlink(root+"/elsewhere", root+"/l"))
	if _, err := trusted.OpenFile(root+"/l", os.O_RDWR|os.O_CREATE, 0o600); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link: %v, want %v", err, syscall.ELOOP)
	}
	if _, err := os.Lstat(root + "/elsewhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was created behind a link: %v", err)
	}
	must(t, os.Chmod(root+"/new", 0o666))
	if _, err := trusted.OpenFile(root+"/new", os.O_RDWR, 0); !errors.Is(err, trusted.ErrUnsafe) {
		t.Errorf("a file that all can write: %v, want %v", err, trusted.ErrUnsafe)
	}
	must(t, syscall.Mkfifo(root+"/fifo", 0o600))
	if _, err := trusted.OpenFile(root+"/fifo", os.O_RDONLY, 0); err == nil {
		t.Error("a FIFO is opened")
	}
}
