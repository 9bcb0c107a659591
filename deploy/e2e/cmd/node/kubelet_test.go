package main

import (
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestParseKubelet(t *testing.T) {
	cfg, err := parseKubelet(strings.Fields("--name n --node-ips 192.0.2.1,2001:db8::1 --labels a=b,c= --cluster-dns 10.96.0.10 --v 4"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"a": "b", "c": ""}; cfg.Name != "n" || len(cfg.Addresses) != 2 || len(cfg.ClusterDNS) != 1 || cfg.Verbosity != 4 || !reflect.DeepEqual(cfg.Labels, want) {
		t.Errorf("parseKubelet() = %+v", cfg)
	}
	for args, want := range map[string]string{
		"--node-ips nowhere": "nowhere",
		"--labels a":         "want KEY=VALUE",
		"--name n rest":      `unexpected argument "rest"`,
	} {
		if _, err := parseKubelet(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseKubelet(%s) = %v, want %q", args, err, want)
		}
	}
}
