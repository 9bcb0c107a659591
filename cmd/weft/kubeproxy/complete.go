package kubeproxy

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// Complete returns the settings of the parsed flags and the file, which may be "".
func (o *Options) Complete(flags *pflag.FlagSet, file string) (*Settings, error) {
	if o.cleanup {
		return nil, cli.Usagef("--cleanup: use the verb: weft cleanup --kube-proxy removes the rules of kube-proxy")
	}
	if flags.Changed("hostname-override") && o.config.HostnameOverride != "" && strings.TrimSpace(o.config.HostnameOverride) == "" {
		return nil, cli.Usagef("--hostname-override: want the name of this node, or nothing for the host's name")
	}
	if file == "" {
		return o.fromFlags(flags)
	}
	data, err := access.Read(file)
	if err != nil {
		return nil, err
	}
	s, err := o.fromData(flags, file, data)
	if err != nil {
		return nil, err
	}
	if ignored := o.ignored(flags); len(ignored) > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s: ignored, because %s has these settings", strings.Join(ignored, ", "), file))
	}
	return s, nil
}

func (o *Options) fromFlags(flags *pflag.FlagSet) (*Settings, error) {
	c := o.config.DeepCopy()
	c.ClusterCIDR = strings.Join(o.clusterCIDRs, ",")
	c.NFTables.MinSyncPeriod.Duration = o.minSyncPeriod
	// The HTTP servers report errors in these addresses.
	metrics, healthz := o.flagAddress(flags, "metrics-bind-address", o.metricsPort), o.flagAddress(flags, "healthz-bind-address", o.healthzPort)
	c.MetricsBindAddress, c.HealthzBindAddress = "", ""
	found := validate(c)
	if len(found) > 0 {
		return nil, flagError(flags, found)
	}
	c.MetricsBindAddress, c.HealthzBindAddress = metrics, healthz
	var warnings []string
	if unused := givenFlags(flags, func(f field, _ string) bool { return f.unused != "" }); len(unused) > 0 {
		warnings = append(warnings, strings.Join(unused, ", ")+": no effect in weft")
	}
	if flags.Changed("proxy-mode") {
		warnings = append(warnings, warnMode(c)...)
	}
	s := settings(c, warnings)
	s.Server = o.server
	s.LogGiven = flags.Changed("v") || flags.Changed("logging-format")
	s.OOMGiven = flags.Changed("oom-score-adj")
	flagsOf(New().AddHostFlags).VisitAll(func(f *pflag.Flag) { s.HostGiven = s.HostGiven || flags.Changed(f.Name) })
	return s, nil
}

// A deprecated port of 0, or an empty address, turns the server off.
func (o *Options) flagAddress(flags *pflag.FlagSet, name string, port int) string {
	f := flags.Lookup(name)
	if f == nil || port == 0 {
		return ""
	}
	address := f.Value.String()
	if host, _, err := net.SplitHostPort(address); err == nil && !f.Changed {
		// With kube-proxy's port.
		address = host
	}
	return withPort(address, port)
}

func (o *Options) ignored(flags *pflag.FlagSet) []string {
	host, log := flagsOf(New().AddHostFlags), flagsOf(func(flags *pflag.FlagSet) { addLogFlags(flags, &New().config.Logging) })
	return givenFlags(flags, func(_ field, name string) bool {
		// Without AddFlags, a flag of this name is not kube-proxy's.
		return (o.all || host.Lookup(name) != nil) && name != "hostname-override" && log.Lookup(name) == nil
	})
}

func givenFlags(flags *pflag.FlagSet, match func(f field, name string) bool) (out []string) {
	for _, f := range fields() {
		for _, name := range f.flags {
			if flags.Changed(name) && match(f, name) {
				out = append(out, "--"+name)
			}
		}
	}
	return out
}

func (o *Options) fromData(flags *pflag.FlagSet, file string, data []byte) (*Settings, error) {
	doc, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	c := doc.config.DeepCopy()
	verbose := c.Logging.Verbosity != 0 || c.Logging.Format != ""
	warnings := append(doc.warnings, fallBack(c)...)
	setDefaults(c)
	copyLogFlags(flags, &c.Logging)
	for _, v := range validate(c) {
		path := doc.path(v.path)
		doc.Add(doc.line(path), path, "got %s: want %s", v.got, v.want)
	}
	if err := doc.Err(file); err != nil {
		return nil, err
	}
	warnings = append(append(warnings, warnMode(c)...), unusedSettings(c, doc.path)...)
	if flags.Changed("hostname-override") && o.config.HostnameOverride != "" {
		c.HostnameOverride = o.config.HostnameOverride
	}
	s := settings(c, warnings)
	s.File, s.data, s.Server = file, data, o.server
	s.HostGiven, s.OOMGiven = true, doc.config.OOMScoreAdj != nil
	s.LogGiven = verbose || flags.Changed("v") || flags.Changed("logging-format")
	return s, nil
}

// The error names the given flags.
func flagError(flags *pflag.FlagSet, found []violation) error {
	var errs []error
	for _, v := range found {
		name := v.path
		for _, f := range fields() {
			if f.path != strings.SplitN(v.path, "[", 2)[0] && !strings.HasPrefix(v.path, f.path+".") {
				continue
			}
			for _, flag := range f.flags {
				if name == v.path || flags.Changed(flag) {
					name = "--" + flag
				}
			}
		}
		errs = append(errs, fmt.Errorf("%s %s: want %s", name, v.got, v.want))
	}
	return cli.Usagef("%w", errors.Join(errs...))
}

// Same reports whether weft need not restart, because the other settings are equal.
func (s *Settings) Same(other *Settings) bool {
	return reflect.DeepEqual(s.Configuration, other.Configuration) && s.SameHost(other)
}

// SameHost reports whether settings of the machine are equal.
func (s *Settings) SameHost(other *Settings) bool {
	return s.Conntrack == other.Conntrack && s.OOMScoreAdj == other.OOMScoreAdj
}

// Parse returns the settings in data; file is for errors, which are *access.FileError.
func Parse(file string, data []byte) (*Settings, error) {
	o := New()
	return o.fromData(flagsOf(o.AddFlags), file, data)
}
