package monitoring

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// publish updates a fragment, and ignores a failure.
func (p *patient) publish(t *testing.T) {
	t.Helper()
	p.published++
	put(t, p.dir, "fragment.nft", fmt.Sprintf("table inet incident { set s { type mark; elements = { %d }; }; }\n", p.published))
	_, _ = run(t, p.dir, filepath.Join(programs(), "weft"), "apply", "-f", "fragment.nft", "--socket", p.socket)
}

// listen occupies an address, as kube-proxy would, until closeListener.
func (p *patient) listen(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address) //nolint:noctx // of the test
	ok(t, err)
	p.listener = l
}

// owned has another program make a table that only it may change, until foreign is closed.
func (p *patient) owned(t *testing.T, table string) {
	t.Helper()
	cmd := exec.Command("nft", "-i") //nolint:noctx // ends with its input
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	ok(t, err)
	p.foreign = input
	t.Cleanup(func() { _, _ = input.Close(), cmd.Wait() })
	_, err = fmt.Fprintf(input, "add table %s { flags owner; }\n", table)
	ok(t, err)
	await(t, "the table "+table, func() error {
		_, err := run(t, "", "nft", append([]string{"list", "table"}, strings.Fields(table)...)...)
		return err
	})
}

func (p *patient) closeListener() { _ = p.listener.Close() }

func (p *patient) healthAddresses() []string {
	if p.aggregator != nil {
		return []string{healthAddress, aggregatorHealth}
	}
	return []string{healthAddress}
}

// updates changes the endpoint of the Service, and waits for the kernel.
func updates(t *testing.T, p *patient) {
	t.Helper()
	p.changed++
	address := fmt.Sprintf("10.244.1.%d", 100+p.changed)
	slice := fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"web-4","namespace":"default","labels":{"kubernetes.io/service-name":"web"}},
"addressType":"IPv4","ports":[{"name":"","port":8080,"protocol":"TCP"}],"endpoints":[{"addresses":[%q]}]}`, address)
	put(t, p.dir, "slice.json", slice)
	must(t, p.dir, "curl", "-sSfk", "-X", "PUT", "-H", "Content-Type: application/json", "-H", "Accept: application/json", "--data-binary", "@slice.json",
		"https://127.0.0.1:6443/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-4")
	await(t, "the endpoint "+address, func() error {
		out, err := run(t, "", "nft", "list", "table", "ip", "weft")
		if err == nil && !strings.Contains(out, address+" ") {
			err = errors.New("the table does not have it")
		}
		return err
	})
}

// forwards checks that the probes neither restart a frontend nor block its node's rollout: its rules
// are in force.
func forwards(t *testing.T, _ *patient) {
	for _, path := range []string{"/livez", "/readyz"} {
		must(t, "", "curl", "-sSf", "-o", "/dev/null", "http://"+healthAddress+path)
	}
}

// whole checks that both families are in force: a change of IPv4, and the Service of IPv6.
func whole(t *testing.T, p *patient) {
	t.Helper()
	updates(t, p)
	await(t, "the table of IPv6", func() error {
		out, err := run(t, "", "nft", "list", "table", "ip6", "weft")
		if err == nil {
			_, err = line(out, "fd00:10:96::77")
		}
		return err
	})
}

// track fills the connection tracking table with flows of a client of this node.
func (p *patient) track(t *testing.T) {
	t.Helper()
	const dir = "/proc/sys/net/netfilter/"
	number := func(name string) int {
		text, err := os.ReadFile(dir + name)
		ok(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		ok(t, err)
		return n
	}
	// They would end during the test.
	must(t, "", "sysctl", "-qw", "net.netfilter.nf_conntrack_udp_timeout=3600")
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	ok(t, err)
	defer func() { _ = conn.Close() }()
	most := number("nf_conntrack_max") * 97 / 100
	for host := byte(1); host < 255; host++ {
		for port := 1; port < 1<<16; port++ {
			// The refusal of an earlier packet may be reported here.
			_, _ = conn.WriteToUDP(nil, &net.UDPAddr{IP: net.IPv4(127, 0, 1, host), Port: port})
		}
		if number("nf_conntrack_count") >= most {
			return
		}
	}
	t.Fatalf("%d flows are tracked, want %d", number("nf_conntrack_count"), most)
}
