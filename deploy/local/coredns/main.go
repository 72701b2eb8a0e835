// Command coredns is CoreDNS with only the plugins a one-node cluster needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order of the directives is the order in which the plugins see a query.
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "kubernetes", "forward"}
	coremain.Run()
}
