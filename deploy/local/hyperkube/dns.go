package main

import (
	"flag"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

// The flags that coremain adds to the process's flag set when the program starts, whichever part it plays.
var dnsFlags = map[string]bool{
	"conf": true, "dns.port": true, "p": true, "pidfile": true, "plugins": true, "quiet": true, "version": true,
}

// Every flag of the process; hideDNSFlags leaves the other parts without dnsFlags, because kube-proxy takes over what it finds.
var allFlags = flag.CommandLine

func hideDNSFlags() {
	rest := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	allFlags.VisitAll(func(f *flag.Flag) {
		if !dnsFlags[f.Name] {
			rest.Var(f.Value, f.Name, f.Usage)
		}
	})
	flag.CommandLine = rest
}

// CoreDNS with only the plugins that a one-node cluster needs.
func runDNS() int {
	flag.CommandLine = allFlags
	// The order of the directives is the order in which the plugins see a query.
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "kubernetes", "forward"}
	coremain.Run()
	return 0
}
