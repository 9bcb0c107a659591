package debian

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Suite is a suite of Debian's archive.
type Suite struct {
	name, dir string
}

// Open prepares a directory for the lists of a suite, without a download.
func Open(dir, name string) (*Suite, error) {
	dir, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	address, err := address(name)
	if err != nil {
		return nil, err
	}
	s := &Suite{name: name, dir: dir}
	for file, text := range map[string]string{
		// An empty status makes apt download all dependencies.
		"status":       "",
		"sources.list": fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, address, name),
		"apt.conf": fmt.Sprintf(`Dir::State "%[1]s";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Sandbox::User "root";
`, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func address(suite string) (string, error) {
	end := "/debian/"
	if strings.HasSuffix(suite, "-security") {
		end = "/debian-security/"
	}
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)").Output()
	if err != nil {
		return "", fmt.Errorf("list the machine's sources of packages: %w", err)
	}
	for _, uri := range strings.Fields(string(out)) {
		if strings.HasSuffix(uri, end) {
			return uri, nil
		}
	}
	return "", fmt.Errorf("no source of packages of this machine ends in %s: only Debian has suite %s", end, suite)
}

// Unpack fills root with the files of packages and of their dependencies that follow accepts. A nil
// follow accepts all. It returns the version of the first package.
func (s *Suite) Unpack(root string, follow func(name string) bool, packages ...string) (version string, err error) {
	stamp := filepath.Join(root, "version")
	if have, err := os.ReadFile(stamp); err == nil {
		return string(have), nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("get %s of %s: %w", strings.Join(packages, ", "), s.name, err)
		}
	}()
	if err := errors.Join(os.RemoveAll(root), os.MkdirAll(root, 0o755)); err != nil {
		return "", err
	}
	if _, err := s.apt("get", "update", "-q"); err != nil {
		return "", err
	}
	all, err := s.closure(follow, packages)
	if err != nil {
		return "", err
	}
	get := []string{"download", "-q"}
	for _, p := range all {
		get = append(get, p.name+"="+p.version)
	}
	if _, err := s.apt("get", get...); err != nil {
		return "", err
	}
	for _, p := range all {
		file := filepath.Join(s.dir, p.file())
		if out, err := exec.Command("dpkg-deb", "-x", file, root).CombinedOutput(); err != nil {
			return "", fmt.Errorf("unpack %s: %w: %s", file, err, out)
		}
		if err := os.Remove(file); err != nil {
			return "", err
		}
	}
	version = all[0].version
	return version, os.WriteFile(stamp, []byte(version), 0o644)
}

func (s *Suite) closure(follow func(string) bool, names []string) ([]pkg, error) {
	var out []pkg
	seen := map[string]bool{}
	for len(names) > 0 {
		found, err := s.find(names)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			seen[name] = true
		}
		out = append(out, found...)
		names = nil
		for _, p := range found {
			for _, d := range p.depends {
				if !seen[d] && !slices.Contains(names, d) && (follow == nil || follow(d)) {
					names = append(names, d)
				}
			}
		}
	}
	return out, nil
}

type pkg struct {
	name, version, arch string
	depends             []string
}

func (p pkg) file() string {
	return fmt.Sprintf("%s_%s_%s.deb", p.name, strings.ReplaceAll(p.version, ":", "%3a"), p.arch)
}

func (s *Suite) find(names []string) ([]pkg, error) {
	out, err := s.apt("cache", append([]string{"show", "--no-all-versions"}, names...)...)
	if err != nil {
		return nil, err
	}
	var found []pkg
	for text := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		p := pkg{}
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "Package":
				p.name = value
			case "Version":
				p.version = value
			case "Architecture":
				p.arch = value
			case "Depends", "Pre-Depends":
				for d := range strings.SplitSeq(value, ",") {
					// The first alternative, without version and architecture.
					first, _, _ := strings.Cut(strings.Fields(d)[0], ":")
					p.depends = append(p.depends, first)
				}
			}
		}
		if p.name == "" || p.version == "" || p.arch == "" {
			return nil, fmt.Errorf("read the list of packages: no name, version or architecture in %q", text)
		}
		found = append(found, p)
	}
	if len(found) != len(names) {
		return nil, fmt.Errorf("find %s: the suite has %d of %d", strings.Join(names, ", "), len(found), len(names))
	}
	return found, nil
}

func (s *Suite) apt(tool string, args ...string) (string, error) {
	cmd := exec.Command("apt-"+tool, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(s.dir, "apt.conf"), "LC_ALL=C")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run apt-%s %s: %w: %s", tool, strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return string(out), nil
}
