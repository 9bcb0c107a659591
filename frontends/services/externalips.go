package services

import "k8s.io/apimachinery/pkg/util/version"

// externalIPsOff is the version of Kubernetes whose default of AllowServiceExternalIPs is false (KEP-5707).
var externalIPsOff = version.MajorMinor(1, 40)

// setVersion follows the API server's default of AllowServiceExternalIPs. The source calls it, and setSynced,
// sequentially.
func (f *Frontend) setVersion(v *version.Version) {
	ignore := v.AtLeast(externalIPsOff)
	if ignore == f.externalIPsIgnored {
		return
	}
	f.externalIPsIgnored = ignore
	services, dirty := f.state.ignoreExternalIPs(ignore)
	f.metrics.proxy.allowExternalIPs(!ignore)
	if f.isSynced() {
		f.logExternalIPs(services)
	}
	if dirty {
		f.publisher.Wake()
	}
}

func (f *Frontend) logExternalIPs(services int) {
	if !f.externalIPsIgnored {
		f.cfg.Logger.Info("external IPs of Services are served, because the API server is older than Kubernetes 1.40", "services", services)
		return
	}
	f.cfg.Logger.Warn("external IPs of Services are ignored, because this is the default from Kubernetes 1.40: "+
		"to serve them, set the feature gate AllowServiceExternalIPs to true", "services", services)
}

// ignoreExternalIPs returns the number of Services with external IPs.
func (s *state) ignoreExternalIPs(ignore bool) (services int, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	services = s.model.SetIgnoreExternalIPs(ignore)
	if dirty = s.model.Dirty(); dirty {
		s.backlog.Add(nil)
	}
	return services, dirty
}

func (m *proxyMetrics) allowExternalIPs(allow bool) {
	m.externalIPs.Set(map[bool]float64{true: 1}[allow])
}
