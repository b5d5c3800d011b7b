"""The ways in which Redis fails, for an installation of a scene's own."""

from tests.flows.installation import Installation


def break_redis(installation: Installation, how: str) -> None:
    """Let Redis be refused, hung, read-only, full or replaced."""
    redis = installation.servers.redis
    match how:
        case "refused":
            redis.stop()
        case "hung":
            redis.freeze()
        case "read-only":
            installation.servers.client().replicaof("127.0.0.1", "1")
        case "full":
            installation.servers.client().config_set("maxmemory", 1)
        case "replaced":
            redis.restart()


def heal_redis(installation: Installation, how: str) -> None:
    """Let Redis work again."""
    redis = installation.servers.redis
    match how:
        case "refused":
            redis.start()
        case "hung":
            redis.thaw()
        case "read-only":
            installation.servers.client().replicaof("NO", "ONE")
        case "full":
            installation.servers.client().config_set("maxmemory", 0)
