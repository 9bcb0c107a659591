package node

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

func newServer(cfg Config) (*options.KubeletServer, error) {
	s, err := options.NewKubeletServer()
	if err != nil {
		return nil, fmt.Errorf("make configuration of kubelet: %w", err)
	}
	setFlags(&s.KubeletFlags, cfg)
	setNode(&s.KubeletConfiguration, cfg)
	setCost(&s.KubeletConfiguration)
	return s, nil
}

func setFlags(f *options.KubeletFlags, cfg Config) {
	f.HostnameOverride = cfg.Name
	f.KubeConfig = cfg.Kubeconfig
	f.RootDirectory = filepath.Join(cfg.Root, "kubelet")
	f.CertDirectory = filepath.Join(cfg.Root, "pki")
	f.NodeIP = join(cfg.Addresses)
}

func join[T fmt.Stringer](values []T) string {
	var s []string
	for _, v := range values {
		s = append(s, v.String())
	}
	return strings.Join(s, ",")
}

func setNode(c *kubeletconfig.KubeletConfiguration, cfg Config) {
	c.ContainerRuntimeEndpoint = "unix://" + cfg.socket()
	c.PodLogsDir = filepath.Join(cfg.Root, "logs")
	c.VolumePluginDir = filepath.Join(cfg.Root, "volume-plugins")
	c.Address = "::" // both families
	c.ReadOnlyPort = 0
	c.Logging.Verbosity = verbosity

	c.ClusterDomain = "cluster.local"
	for _, addr := range cfg.ClusterDNS {
		c.ClusterDNS = append(c.ClusterDNS, addr.String())
	}
	// The machine's own DNS servers are unreachable from here.
	c.ResolverConfig = ""
	c.MaxPods = maxPods
	c.MaxOpenFiles = 1 << 14 // a node may not raise the machine's limit

	c.CgroupsPerQOS = false
	c.EnforceNodeAllocatable = nil
	c.FailSwapOn = false
	c.FailCgroupV1 = false
	c.CPUCFSQuota = false
	// No controller attaches volumes.
	c.EnableControllerAttachDetach = false
	c.MakeIPTablesUtilChains = false
}

// setCost removes limits and periodic work that tests do not need.
func setCost(c *kubeletconfig.KubeletConfiguration) {
	c.KubeAPIQPS, c.KubeAPIBurst = 1000, 2000
	c.EventRecordQPS, c.EventBurst = 100, 200
	c.RegistryPullQPS = 0
	c.SerializeImagePulls = false

	// The machine owns the disk, so the node must neither clean it nor evict pods for it.
	c.EvictionHard = nil
	c.LocalStorageCapacityIsolation = false
	c.ImageGCHighThresholdPercent = 100
	c.ImageMaximumGCAge.Duration = 0
	c.VolumeStatsAggPeriod.Duration = -1
	c.ContainerLogMonitorInterval.Duration = time.Hour
}
