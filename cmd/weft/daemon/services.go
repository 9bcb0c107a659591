package daemon

import (
	"github.com/weft-proxy/weft/frontends/services"
)

// addServices makes the Service frontend.
func (d *daemon) addServices() error {
	cfg := d.settings.Config
	cfg.Source, cfg.NodeName, cfg.Socket, cfg.Events = d.cluster.source, d.cluster.nodeName, d.cluster.socket, d.cluster.events
	cfg.Logger, cfg.Registerer = d.log.With("component", "services"), d.registry
	f, err := services.New(cfg)
	if err != nil {
		return err
	}
	d.frontends, d.proxy = append(d.frontends, f), f.Health()
	return nil
}
