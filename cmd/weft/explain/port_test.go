package explain

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestChoosePort chooses a Service's port by name, number and protocol.
func TestChoosePort(t *testing.T) {
	dns := &model.Service{Ports: []model.Port{
		{Name: "dns", Number: 53, Protocol: unix.IPPROTO_UDP}, {Name: "dns-tcp", Number: 53, Protocol: unix.IPPROTO_TCP},
		{Name: "metrics", Number: 9153, Protocol: unix.IPPROTO_TCP},
	}}
	for _, tt := range []struct {
		port     string
		protocol uint8
		want     string
	}{
		{"53", 0, "dns"},
		{"53", unix.IPPROTO_TCP, "dns-tcp"},
		{"53", unix.IPPROTO_UDP, "dns"},
		{"metrics", unix.IPPROTO_TCP, "metrics"},
		{"9153", unix.IPPROTO_UDP, `no port "9153" of udp; it has dns (53/udp)`},
		{"80", 0, `no port "80"; it has dns (53/udp)`},
		{"", 0, "several ports"},
	} {
		p, err := choosePort(dns, tt.port, tt.protocol)
		switch {
		case err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("port %q of protocol %d: %v, want %s", tt.port, tt.protocol, err, tt.want)
		case err == nil && p.Name != tt.want:
			t.Errorf("port %q of protocol %d is %s, want %s", tt.port, tt.protocol, p.Name, tt.want)
		}
	}
}
