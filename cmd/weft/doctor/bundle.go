package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	// bundleLimit is for all parts together.
	bundleLimit = 30 * time.Second
	// maxPart is in bytes; larger parts are cut.
	maxPart = 64 << 20
)

// A bundle never has a kubeconfig, token, certificate, environment, or weft's configuration.

var procFiles = []string{
	"proc/version", "proc/uptime", "proc/meminfo", "proc/modules", "proc/net/netstat", "proc/net/snmp", "proc/net/snmp6", "proc/net/dev",
	"proc/net/netfilter/nf_log", "proc/net/stat/nf_conntrack", "proc/net/stat/arp_cache", "proc/net/stat/ndisc_cache",
	"proc/sys/net/ipv4/ip_forward", "proc/sys/net/ipv4/ip_local_port_range", "proc/sys/net/ipv4/ip_local_reserved_ports",
	"proc/sys/net/ipv4/conf/*/forwarding", "proc/sys/net/ipv4/conf/*/rp_filter", "proc/sys/net/ipv6/conf/*/forwarding",
	"proc/sys/net/netfilter/nf_conntrack_*", "proc/sys/net/bridge/*",
}

// Missing programs are left out of a bundle.
var programs = [][]string{
	{"nft", "-a", "list", "ruleset"}, {"ip", "-d", "address"}, {"ip", "rule"}, {"ip", "route", "show", "table", "all"},
	{"ip", "-6", "route", "show", "table", "all"}, {"ss", "-xlp"},
}

// writeBundle gives the file its name when it is complete.
func writeBundle(ctx context.Context, path string, cfg Config, r *Report) (err error) {
	ctx, cancel := context.WithTimeout(ctx, bundleLimit)
	defer cancel()
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	zip := gzip.NewWriter(f)
	b := &bundle{tar: tar.NewWriter(zip)}
	b.collect(ctx, cfg, r)
	if err := errors.Join(b.err, b.tar.Close(), zip.Close(), f.Close()); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return os.Rename(f.Name(), path)
}

type bundle struct {
	tar *tar.Writer
	// the first error of a write
	err error
}

// add adds err to the content, and ".error" to the name.
func (b *bundle) add(name string, content []byte, err error) {
	if err != nil {
		name, content = name+".error", append(content, err.Error()+"\n"...)
	}
	if b.err != nil || len(content) == 0 {
		return
	}
	content = content[:min(len(content), maxPart)]
	h := &tar.Header{Name: "weft/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: time.Now()}
	if b.err = b.tar.WriteHeader(h); b.err == nil {
		_, b.err = b.tar.Write(content)
	}
}

func (b *bundle) message(name string) func(proto.Message, error) {
	return func(m proto.Message, err error) {
		var content []byte
		if err == nil {
			content, err = protojson.MarshalOptions{Multiline: true}.Marshal(m)
		}
		b.add(name, content, err)
	}
}

func (b *bundle) collect(ctx context.Context, cfg Config, r *Report) {
	n := newNode(ctx, cfg)
	defer n.close()
	text, err := json.MarshalIndent(r, "", "  ")
	b.add("report.json", text, err)
	b.weft(ctx, n)
	for _, page := range []struct{ address, path, name string }{
		{n.Metrics, "/metrics", "metrics.txt"}, {n.Health, "/healthz", "healthz.txt"}, {n.Health, "/livez", "livez.txt"}, {n.Health, "/readyz", "readyz.txt"},
	} {
		code, body, err := httpGet(ctx, page.address, page.path)
		b.add(page.name, fmt.Appendf(nil, "%d\n%s\n", code, body), err)
	}
	for _, pattern := range procFiles {
		// The pattern is valid.
		found, _ := filepath.Glob(filepath.Join(n.Root, pattern))
		for _, path := range found {
			content, err := os.ReadFile(path) //nolint:gosec // files of the kernel
			b.add(strings.TrimPrefix(path, n.Root), content, err)
		}
	}
	for _, argv := range programs {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // one of programs
		if cmd.Err != nil {
			continue // it is not installed
		}
		var out bytes.Buffer
		// One writer for both, so that os/exec writes from one goroutine.
		to := &limited{w: &out}
		cmd.Stdout, cmd.Stderr = to, to
		err = cmd.Run()
		b.add(strings.Join(argv, "-")+".txt", out.Bytes(), err)
	}
}

func (b *bundle) weft(ctx context.Context, n *node) {
	c, err := n.dial()
	if err != nil {
		b.add("socket", nil, err)
		return
	}
	b.message("info.json")(weftv1.NewInspectClient(c.Conn()).GetInfo(ctx, &weftv1.GetInfoRequest{}))
	b.message("publishers.json")(c.ListPublishers(ctx))
	b.message("fragments.json")(c.List(ctx))
	b.message("tables.json")(c.ListTables(ctx))
	state, err := get.ReadServices(ctx, &cli.Connection{Socket: n.Socket, Publisher: n.Publisher}, model.Key{})
	var text []byte
	if err == nil {
		text, err = json.MarshalIndent(state, "", "  ")
	}
	b.add("services.json", text, err)
}

type limited struct{ w *bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if rest := maxPart - l.w.Len(); rest > 0 {
		l.w.Write(p[:min(len(p), rest)])
	}
	return len(p), nil
}
