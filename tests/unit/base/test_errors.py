from octavo.base.errors import ConfigError, ConfigProblem, LoadError, ModelNotFoundError, OctavoError, ValidationError


def test_config_error_lists_every_problem_with_option_value_and_remedy():
    error = ConfigError(
        [ConfigProblem("max_num_seqs", 0, "must be at least 1"), ConfigProblem("dtype", "int3", "choose")]
    )
    assert str(error).splitlines() == ["max_num_seqs=0: must be at least 1", "dtype='int3': choose"]


def test_validation_error_is_a_value_error_and_names_its_parameter():
    error = ValidationError("too hot", parameter="temperature", value=9)
    assert isinstance(error, ValueError)
    assert isinstance(error, OctavoError)
    assert (error.parameter, error.value) == ("temperature", 9)


def test_a_missing_model_is_a_load_error():
    assert issubclass(ModelNotFoundError, LoadError)
